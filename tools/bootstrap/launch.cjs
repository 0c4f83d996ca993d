// Apart from entry.cjs because `import()` itself is a syntax error for an old Node.
'use strict';

module.exports = (command) => {
  import('./main.mjs').then(({ main }) => main(command, process.argv.slice(2)));
};
