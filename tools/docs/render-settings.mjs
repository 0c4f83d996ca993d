const BEGIN = '<!-- settings: written by `npm run generate:settings` from the schema -->';
const END = '<!-- end of settings -->';

const COLUMNS = ['key', 'value', 'bounds', 'unit', 'default'];
const escape = (text) => text.replaceAll(/[*|<]/g, (sign) => `\\${sign}`);
const code = (text) => (text === '' ? '' : `\`${text}\``);
const defaultOf = (text) => (['none', 'optional', 'required'].includes(text) ? text : code(text));

const cellsOf = ({ key, description, values, unit, otherwise }) => [
  code(key),
  escape(description),
  escape(values),
  unit,
  defaultOf(otherwise),
];

const renderTable = ({ name, rows }) => {
  const cells = [COLUMNS, ...rows.map(cellsOf)];
  const widths = COLUMNS.map((_, column) => Math.max(3, ...cells.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  const [head, ...body] = cells.map(line);
  return [`\`${name}\``, '', head, rule, ...body, ''].join('\n');
};

/** Returns the text of docs/contract.md with the tables of settings. */
export const withSettings = (contract, tables) => {
  const [before, rest = ''] = contract.split(BEGIN);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGIN}\n\n${tables.map(renderTable).join('\n')}\n${END}${after}`;
};
