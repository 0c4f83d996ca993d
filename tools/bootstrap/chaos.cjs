// `npm run chaos`
require('./entry.cjs')('run chaos');
