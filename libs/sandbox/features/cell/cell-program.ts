import { readFile } from 'node:fs/promises';

/** Compiled code runs from `.js`; the tests run the sources, whose types Node strips by itself. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const FILES = ['extism-kernel', 'cell'];
const RELATIVE_IMPORT = /^import [^;]* from '\.\/[^']*';$/gm;

export interface CellProgram {
  readonly source: string;
  /** Value of Node's `--input-type`. */
  readonly inputType: 'module' | 'module-typescript';
}

/** Joins the files of a cell into one module: the imports between them fall away, those of Node's stay. */
export const readCellProgram = async (): Promise<CellProgram> => {
  const texts = await Promise.all(
    FILES.map((name) => readFile(new URL(`./${name}${EXTENSION}`, import.meta.url), 'utf8')),
  );
  const source = [...texts.map((text) => text.replace(RELATIVE_IMPORT, '')), 'serve();'].join('\n');
  return { source, inputType: EXTENSION === '.ts' ? 'module-typescript' : 'module' };
};
