-- KEYS: any number of deadlines. ARGV: most. Gives for each who may be over: a touch is not seen here.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for n, key in ipairs(KEYS) do
  found[n] = redis.call('ZRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', now), 'LIMIT', 0, ARGV[1])
end
return found
