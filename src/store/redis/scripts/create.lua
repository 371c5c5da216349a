-- KEYS: record, log, deadlines. ARGV: member, age, idle for, idle, maximum age (ms), slack, then fields and values.
if redis.call('EXISTS', KEYS[1]) == 1 then return -1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local began, touched = now - ARGV[2], now - ARGV[3]
local due = math.min(began + ARGV[5], touched + ARGV[4])
-- The first write is one that a full server refuses, so that it is all or nothing.
redis.call('HSET', KEYS[1], 'b', began, 't', touched, 'i', ARGV[4], 'm', ARGV[5])
for n = 7, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1]) end
redis.call('PEXPIREAT', KEYS[1], due + ARGV[6])
redis.call('DEL', KEYS[2])
redis.call('ZADD', KEYS[3], due, ARGV[1])
return 1
