-- KEYS: lease, replicas, generation. ARGV: id, what it says, counts, time (ms), a generation if there is none.
redis.call('HSET', KEYS[1], 'd', ARGV[2], 'c', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SADD', KEYS[2], ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SETNX', KEYS[3], ARGV[5] .. ' ' .. string.format('%d', now))
return redis.call('GET', KEYS[3]) .. ' ' .. string.format('%d', now)
