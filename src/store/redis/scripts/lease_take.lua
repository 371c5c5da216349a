-- KEYS: lease, replicas, generation. ARGV: id, what it says, counts, time (ms), a generation if there is none.
redis.call('HSET', KEYS[1], 'd', ARGV[2], 'c', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('SETNX', KEYS[3], ARGV[5])
return redis.call('GET', KEYS[3])
