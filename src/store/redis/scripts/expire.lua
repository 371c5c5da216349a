-- KEYS: record, log, deadlines. ARGV: member. 0: there is no record; 1: it goes on; else its time and fields.
local held = redis.call('HMGET', KEYS[1], 'b', 't', 'i', 'm')
if not held[1] then
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('DEL', KEYS[2])
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = math.min(held[1] + held[4], held[2] + held[3])
if now <= due then
  redis.call('ZADD', KEYS[3], due, ARGV[1])
  return 1
end
local fields = redis.call('HGETALL', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
return { now, fields }
