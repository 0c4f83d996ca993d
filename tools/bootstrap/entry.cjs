// Parses on any Node there ever was (no arrow functions, no `const`, no `import`), so that an old one is told what it lacks
// instead of failing with a syntax error.
'use strict';

var REQUIRED = [20, 17];

function isTooOld(version) {
  var parts = version.split('.');
  var major = Number(parts[0]);
  return major < REQUIRED[0] || (major === REQUIRED[0] && Number(parts[1]) < REQUIRED[1]);
}

module.exports = function (command) {
  if (isTooOld(process.versions.node)) {
    console.error(
      'antiphon: this is Node ' +
        process.versions.node +
        ', and at least Node ' +
        REQUIRED.join('.') +
        ' is needed to begin (everything after that runs on the Node 24 that is installed with the packages).\n' +
        'What to do: install a newer Node, from nodejs.org or with a version manager such as nvm, fnm or mise, and run `npm ' +
        command +
        '` again.',
    );
    process.exit(1);
  }
  require('./launch.cjs')(command);
};
