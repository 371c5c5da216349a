-- KEYS: record, log. ARGV: epoch, then ids.
local epoch = redis.call('HGET', KEYS[1], 'e')
if not epoch then return 0 end
if epoch ~= ARGV[1] then return -1 end
for n = 2, #ARGV do redis.call('XDEL', KEYS[2], ARGV[n]) end
return 1
