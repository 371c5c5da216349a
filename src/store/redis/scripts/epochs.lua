-- KEYS: any number of records.
local found = {}
for n, key in ipairs(KEYS) do found[n] = redis.call('HGET', key, 'e') end
return found
