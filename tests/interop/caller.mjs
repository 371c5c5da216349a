// A small MCP client for the conformance suite's client scenarios: it starts a gateway in front of the suite's server
// and calls everything there is through it. So the gateway is the client under test.
//
//   node caller.mjs SERVER_URL     env: MCPGATE (the program), CALLER_ERA (legacy | modern), MCP_CONFORMANCE_SCENARIO,
//                                  MCP_CONFORMANCE_CONTEXT ({toolCalls} that the scenario wants)
import { spawn } from 'node:child_process';

const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const { MCPGATE, CALLER_ERA, MCP_CONFORMANCE_SCENARIO: scenario } = process.env;
const modern = CALLER_ERA === 'modern';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
const clientInfo = { name: 'caller', version: '1' };

const gateway = spawn(MCPGATE, ['serve', '--url', process.argv[2], '--name', 's', '--listen', '127.0.0.1:0', '--admin', 'off'], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
const address = await new Promise((resolve, reject) => {
  let said = '';
  const hear = (chunk) => {
    said += chunk;
    const at = said.match(/serving at http:\/\/([0-9.:]+)/);
    if (at) resolve(at[1]);
  };
  gateway.stdout.on('data', hear);
  gateway.stderr.on('data', hear);
  gateway.on('exit', () => reject(new Error(`the gateway ended: ${said}`)));
});
const endpoint = `http://${address}/servers/s/mcp`;

let session;
let next = 1;

// Header values that are not plain stand in base64 between markers.
const mirrored = (value) =>
  /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(value) ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`;

async function post(message) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  if (modern) {
    const { method, params } = message;
    Object.assign(headers, { 'mcp-protocol-version': MODERN, 'mcp-method': method });
    const name = method === 'resources/read' ? params.uri : ['tools/call', 'prompts/get'].includes(method) && params.name;
    if (name) headers['mcp-name'] = mirrored(name);
    for (const [header, value] of Object.entries(message.mirror ?? {})) headers[`mcp-param-${header}`] = mirrored(value);
    delete message.mirror;
    params._meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientCapabilities': capabilities,
      'io.modelcontextprotocol/clientInfo': clientInfo,
    };
  } else if (session) {
    Object.assign(headers, { 'mcp-session-id': session, 'mcp-protocol-version': LEGACY });
  }
  return fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(message) });
}

// The messages of an answer, as they come.
async function* messages(answer) {
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) {
    const text = await answer.text();
    if (text) yield JSON.parse(text);
    return;
  }
  let rest = '';
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    rest += chunk;
    for (let end; (end = rest.indexOf('\n\n')) >= 0; rest = rest.slice(end + 2)) {
      const data = rest.slice(0, end).split('\n').filter((l) => l.startsWith('data:')).map((l) => l.slice(5)).join('\n');
      if (data.trim()) yield JSON.parse(data);
    }
  }
}

function answerTo(question) {
  if (question.method === 'roots/list') return { roots: [{ uri: 'file:///work', name: 'work' }] };
  if (question.method === 'sampling/createMessage') {
    return { role: 'assistant', model: 'none', content: { type: 'text', text: 'hello' } };
  }
  const content = {};
  for (const [name, schema] of Object.entries(question.params.requestedSchema?.properties ?? {})) {
    content[name] = schema.default ?? (schema.type === 'boolean' ? true : undefined);
  }
  return { action: 'accept', content };
}

// Between the question and the answer another call is made, which must get nothing of this one's.
const meanwhile = () => (scenario === 'sep-2322-client-request-state' ? request('tools/call', { name: 'test_mrtr_unrelated', arguments: {} }) : null);

async function request(method, params, mirror) {
  const message = { jsonrpc: '2.0', id: next++, method, params: { ...params }, mirror: modern ? mirror : undefined };
  for await (const said of messages(await post(message))) {
    if (said.method && said.id !== undefined) {
      await meanwhile();
      await post({ jsonrpc: '2.0', id: said.id, result: answerTo(said) });
    } else if (said.id === message.id) {
      if (said.error) console.error(method, JSON.stringify(said.error));
      if (said.result?.resultType !== 'input_required') return said.result;
      await meanwhile();
      const { inputRequests = {}, requestState } = said.result;
      const inputResponses = Object.fromEntries(Object.entries(inputRequests).map(([k, q]) => [k, answerTo(q)]));
      return request(method, { ...params, inputResponses, ...(requestState === undefined ? {} : { requestState }) }, mirror);
    }
  }
}

// What a tool's schema wants repeated in headers.
function mirrorOf(tool, args) {
  const mirror = {};
  for (const [name, schema] of Object.entries(tool?.inputSchema?.properties ?? {})) {
    const value = args[name];
    if (schema['x-mcp-header'] && value !== undefined && value !== null) mirror[schema['x-mcp-header']] = String(value);
  }
  return mirror;
}

try {
  if (!modern) {
    const hello = { jsonrpc: '2.0', id: next++, method: 'initialize', params: { protocolVersion: LEGACY, capabilities, clientInfo } };
    const answer = await post(hello);
    session = answer.headers.get('mcp-session-id');
    await answer.text();
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }
  const { tools = [] } = (await request('tools/list', {})) ?? {};
  const sample = (tool) => Object.fromEntries((tool.inputSchema.required ?? []).map((name) => {
    const type = tool.inputSchema.properties[name]?.type;
    return [name, { integer: 5, number: 5, boolean: true, array: [], object: {} }[type] ?? 'x'];
  }));
  let calls = context.toolCalls ?? tools.map((tool) => ({ name: tool.name, arguments: sample(tool) }));
  if (scenario === 'json-schema-2020-12-preservation') {
    calls = [{ name: 'json_schema_echo', arguments: { schema: tools.find((t) => t.name !== 'json_schema_echo').inputSchema } }];
  }
  for (const call of calls) {
    await request('tools/call', call, mirrorOf(tools.find((t) => t.name === call.name), call.arguments));
  }
  if (scenario === 'http-standard-headers') {
    const { resources = [] } = (await request('resources/list', {})) ?? {};
    for (const { uri } of resources) await request('resources/read', { uri });
    const { prompts = [] } = (await request('prompts/list', {})) ?? {};
    for (const { name } of prompts) await request('prompts/get', { name });
  }
} finally {
  gateway.kill('SIGTERM');
  await new Promise((resolve) => gateway.once('exit', resolve));
}
