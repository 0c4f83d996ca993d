/** One value of the input of a tool, for a table. */
export interface SchemaRow {
  /** Name with those of the values around it, such as `steps[].text`. */
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  /** Bounds of the value, such as `at most 200 characters`. */
  readonly limits: string;
  readonly text: string;
}

type Schema = Readonly<Record<string, unknown>>;

/** A schema of a plug-in may be of any size and depth. */
const MAX_ROWS = 200;
const MAX_DEPTH = 6;
const MAX_TEXT = 500;
const MAX_CHOICES = 12;

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const schemasOf = (value: unknown): readonly Schema[] => listOf(value).filter(isSchema);
const cut = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)} …` : text);

/** Returns the schemas of which a value has one. */
const choicesOf = (schema: Schema): readonly Schema[] => [
  ...schemasOf(schema['anyOf']),
  ...schemasOf(schema['oneOf']),
];

const printChoices = (values: readonly unknown[]): string => {
  const shown = values.slice(0, MAX_CHOICES).map((value) => JSON.stringify(value));
  return [...shown, ...(values.length > MAX_CHOICES ? ['…'] : [])].join(' or ');
};

/** Returns the type of a value in words, such as `string[]` or `"done" or "failed"`. */
const typeOf = (schema: Schema, depth = 0): string => {
  if (depth > MAX_DEPTH) return '…';
  if ('const' in schema) return printChoices([schema['const']]);
  if (Array.isArray(schema['enum'])) return printChoices(schema['enum']);
  const choices = choicesOf(schema);
  if (choices.length > 0)
    return [...new Set(choices.slice(0, MAX_CHOICES).map((choice) => typeOf(choice, depth + 1)))].join(
      ' or ',
    );
  const { type, items } = schema;
  if (type === 'array') return isSchema(items) ? `${typeOf(items, depth + 1)}[]` : 'array';
  if (Array.isArray(type)) return type.map(String).join(' or ');
  return typeof type === 'string' ? type : 'any';
};

const LIMITS: readonly (readonly [key: string, text: (value: string) => string])[] = [
  ['minimum', (value) => `at least ${value}`],
  ['exclusiveMinimum', (value) => `more than ${value}`],
  ['maximum', (value) => `at most ${value}`],
  ['exclusiveMaximum', (value) => `less than ${value}`],
  ['minLength', (value) => `at least ${value} characters`],
  ['maxLength', (value) => `at most ${value} characters`],
  ['minItems', (value) => `at least ${value} entries`],
  ['maxItems', (value) => `at most ${value} entries`],
  ['format', (value) => `as ${value}`],
  ['pattern', (value) => `matches ${value}`],
];

const limitsOf = (schema: Schema): string => {
  const limits = LIMITS.flatMap(([key, text]) => {
    const value = schema[key];
    return typeof value === 'number' || typeof value === 'string' ? [text(String(value))] : [];
  });
  const preset = 'default' in schema ? [`default ${JSON.stringify(schema['default'])}`] : [];
  return cut([...limits, ...preset].join(', '));
};

/** Adds the rows of the values within a value. */
const addRows = (rows: SchemaRow[], schema: Schema, prefix: string, depth: number): void => {
  if (depth > MAX_DEPTH) return;
  for (const choice of choicesOf(schema)) addRows(rows, choice, prefix, depth + 1);
  const { items, properties, required } = schema;
  if (isSchema(items)) addRows(rows, items, `${prefix}[]`, depth + 1);
  if (!isSchema(properties)) return;
  const needed = new Set(listOf(required));
  for (const [name, value] of Object.entries(properties)) {
    if (rows.length >= MAX_ROWS) return;
    if (!isSchema(value)) continue;
    const path = cut(prefix === '' ? name : `${prefix}.${name}`);
    const text = typeof value['description'] === 'string' ? cut(value['description']) : '';
    const row = {
      path,
      type: cut(typeOf(value)),
      isRequired: needed.has(name),
      limits: limitsOf(value),
      text,
    };
    rows.push(row);
    addRows(rows, value, path, depth + 1);
  }
};

/** Returns the values of a JSON Schema as rows, those of an object after it. */
export const schemaRows = (schema: unknown): readonly SchemaRow[] => {
  const rows: SchemaRow[] = [];
  if (isSchema(schema)) addRows(rows, schema, '', 0);
  return rows;
};
