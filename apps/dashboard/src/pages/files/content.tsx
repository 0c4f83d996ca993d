import { lazy, Suspense, useMemo } from 'react';
import { formOf, MAX_TABLE_ROWS, readCsv, type FileContent } from '../../data/file-content.js';
import { roleOfPath } from '../../data/role-file.js';
import { useParam } from '../../data/router.js';
import { formatBytes, formatNumber } from '../../ui/format.js';
import { Markdown } from '../../ui/markdown.js';
import { Empty, Id, Loading, css as ui } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { RoleView } from './role-view.js';
import css from './files.module.css';

const CodeText = lazy(async () => ({ default: (await import('./code.js')).CodeText }));

/** Returns the first and the last line of `12` or `12-20`; null for another text. */
const linesOf = (text: string): readonly [number, number] | null => {
  const [, first, last] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(text) ?? [];
  return first === undefined ? null : [Number(first), Number(last ?? first)];
};

const CsvView = ({ text }: { readonly text: string }) => {
  const { rows, isCut } = useMemo(() => readCsv(text), [text]);
  const [head = [], ...body] = rows;
  return (
    <>
      <div className={css.table} tabIndex={0} role="region" aria-label="Table of the file">
        <table className={ui.table}>
          <thead>
            <tr>
              {head.map((cell, index) => (
                <th key={index} scope="col">
                  <VisibleText text={cell} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.map((row, index) => (
              <tr key={index}>
                {row.map((cell, at) => (
                  <td key={at}>
                    <VisibleText text={cell} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {isCut && <p className={css.left}>Only the first {formatNumber(MAX_TABLE_ROWS)} rows are shown.</p>}
    </>
  );
};

interface ContentProps {
  readonly path: string;
  readonly content: FileContent;
  readonly size: number;
  readonly digest: string | null;
}

/** Shows the content of a file. Nothing of it runs, and nothing is fetched for it. */
export const Content = ({ path, content, size, digest }: ContentProps) => {
  const isSource = useParam('source') !== '';
  const line = useParam('line');
  const lines = useMemo(() => linesOf(line), [line]);
  if (content.kind === 'image')
    return (
      <div className={css.image}>
        <img src={content.url} alt={`Image of ${formatBytes(size)} (${content.media})`} />
      </div>
    );
  if (content.kind === 'bytes')
    return (
      <Empty title="This file is no text">
        <p>
          {formatBytes(size)}
          {digest && (
            <>
              , SHA-256 <Id id={digest} />
            </>
          )}
        </p>
      </Empty>
    );
  const form = isSource || lines ? 'code' : formOf(path);
  if (form === 'markdown' && roleOfPath(path) !== null) return <RoleView text={content.text} />;
  if (form === 'markdown')
    return (
      <div className={css.markdown}>
        <Markdown text={content.text} />
      </div>
    );
  if (form === 'table') return <CsvView text={content.text} />;
  return (
    <Suspense fallback={<Loading what="the text" />}>
      <CodeText path={path} text={content.text} label={`Text of ${path}`} lines={lines} />
    </Suspense>
  );
};
