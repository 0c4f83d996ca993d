// `npm run setup`
require('./entry.cjs')('run setup');
