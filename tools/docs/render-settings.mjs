import { code, escapeCell, renderTable, withPart } from './markdown.mjs';

const COLUMNS = ['key', 'value', 'bounds', 'unit', 'default'];
const defaultOf = (text) => (['none', 'optional', 'required'].includes(text) ? text : code(text));

const cellsOf = ({ key, description, values, unit, otherwise }) => [
  code(key),
  escapeCell(description),
  escapeCell(values),
  unit,
  defaultOf(otherwise),
];

const renderSettings = ({ name, rows }) => `${code(name)}\n\n${renderTable(COLUMNS, rows.map(cellsOf))}`;

/** Returns the text of docs/contract.md with the tables of settings. */
export const withSettings = (contract, tables) =>
  withPart(contract, 'settings', tables.map(renderSettings).join('\n\n'));
