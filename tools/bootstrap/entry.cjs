// Written in ES5, so that an old Node prints what it lacks and not a syntax error.
'use strict';

var REQUIRED = [20, 17];

function isTooOld(version) {
  var parts = version.split('.');
  var major = Number(parts[0]);
  return major < REQUIRED[0] || (major === REQUIRED[0] && Number(parts[1]) < REQUIRED[1]);
}

// One call per line, because old parsers refuse the trailing comma of a wrapped call.
function explain(command) {
  var need = REQUIRED.join('.');
  var have = process.versions.node;
  var lines = [];
  lines.push('antiphon: this is Node ' + have + ', and at least Node ' + need + ' is needed to begin');
  lines.push('(everything after that runs on the Node 24 that is installed with the packages).');
  lines.push('What to do: install a newer Node, from nodejs.org or with a version manager such as');
  lines.push('nvm, fnm or mise, and run `npm ' + command + '` again.');
  return lines.join('\n');
}

module.exports = function (command) {
  if (isTooOld(process.versions.node)) {
    console.error(explain(command));
    process.exit(1);
  }
  require('./launch.cjs')(command);
};
