// `npm start`
require('./entry.cjs')('start');
