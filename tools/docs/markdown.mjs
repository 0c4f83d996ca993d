/** Returns text as the cell of a table. */
export const escapeCell = (text) => text.replaceAll(/[*|<]/g, (sign) => `\\${sign}`);

/** Returns text as code; nothing for no text. */
export const code = (text) => (text === '' ? '' : `\`${text}\``);

/** Returns a table, with its columns as wide as prettier makes them. */
export const renderTable = (columns, rows) => {
  const cells = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(3, ...cells.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`;
  const [head, ...body] = cells.map(line);
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body].join('\n');
};

/** Returns a document with the content of a generated part replaced. Throws if it lacks the part. */
export const withPart = (document, name, content) => {
  const begin = `<!-- ${name}: written by \`npm run generate:docs\` -->`;
  const end = `<!-- end of ${name} -->`;
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) throw new Error(`the document has no part "${name}"`);
  return `${document.slice(0, from)}${begin}\n\n${content}\n\n${document.slice(to)}`;
};
