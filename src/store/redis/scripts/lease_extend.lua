-- KEYS: lease, replicas, generation. ARGV: id, counts, time (ms), a generation if there is none.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'c', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SETNX', KEYS[3], ARGV[4] .. ' ' .. string.format('%d', now))
return redis.call('GET', KEYS[3]) .. ' ' .. string.format('%d', now)
