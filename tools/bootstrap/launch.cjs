// Separate from entry.cjs because `import()` is a syntax error in an old Node.
'use strict';

module.exports = (command) => {
  import('./main.mjs').then(({ main }) => main(command, process.argv.slice(2)));
};
