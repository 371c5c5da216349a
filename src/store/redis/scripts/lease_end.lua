-- KEYS: replicas, then leases. ARGV: `all` or `dead`, then the ids of the leases, which are ended: all, or the dead ones.
for n = 2, #KEYS do
  if ARGV[1] == 'all' then redis.call('DEL', KEYS[n]) end
  if redis.call('EXISTS', KEYS[n]) == 0 then redis.call('SREM', KEYS[1], ARGV[n]) end
end
return 1
