-- KEYS: record, log. ARGV: from, most.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])
