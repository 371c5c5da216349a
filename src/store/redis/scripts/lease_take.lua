-- KEYS: lease, replicas, generation. ARGV: id, what it says, counts, shares, time (ms), a generation if there is none of this server.
-- The first write is one that a full server takes, and so it takes the others.
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'd', ARGV[2], 'c', ARGV[3], 's', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('SADD', KEYS[2], ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Another server, or the same one started again, may not have the last writes.
local info = redis.pcall('INFO', 'server')
local server = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '-'
local held = redis.call('GET', KEYS[3])
if not held or string.match(held, '%S+$') ~= server then
  held = ARGV[6] .. ' ' .. string.format('%d', now) .. ' ' .. server
  redis.call('SET', KEYS[3], held)
end
return held .. ' ' .. string.format('%d', now)
