// `npm stop`
require('./entry.cjs')('stop');
