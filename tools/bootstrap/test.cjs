// `npm test`
require('./entry.cjs')('test');
