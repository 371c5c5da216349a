-- KEYS: record, log, deadlines. ARGV: member. Gives the server's time and the fields.
local fields = redis.call('HGETALL', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
if #fields == 0 then return false end
local time = redis.call('TIME')
return { time[1] * 1000 + math.floor(time[2] / 1000), fields }
