import type { Nodes, RootContent } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { Fragment, memo, useState, type JSX, type ReactNode } from 'react';
import { isSplittable, splitBlocks } from './split-blocks.js';
import { directionOf } from './text-direction.js';
import { VisibleText } from './visible-text.js';
import { Code } from './json.js';
import { download } from './download.js';
import { Button, CopyButton, Dialog, IconButton } from './ui.js';
import css from './markdown.module.css';

const OPTIONS = { extensions: [gfm({ singleTilde: false })], mdastExtensions: [gfmFromMarkdown()] };
const SAFE_LINK = /^(https?:\/\/|mailto:)/i;
/** Deeper content is shown as its text. */
const MAX_DEPTH = 40;

/** Returns all text below a node, without recursion. */
const textOf = (node: Nodes): string => {
  const texts: string[] = [];
  const left: Nodes[] = [node];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if ('value' in next) texts.push(next.value);
    if ('children' in next) left.push(...next.children.toReversed());
  }
  return texts.join(' ');
};

const childrenOf = (node: Nodes, depth: number): ReactNode =>
  'children' in node
    ? (node.children as RootContent[]).map((child, index) => (
        <Node key={index} node={child} depth={depth + 1} />
      ))
    : null;

/** A link of a model or a tool: it opens after the reader has seen the whole address. */
const UntrustedLink = ({ url, children }: { readonly url: string; readonly children: ReactNode }) => {
  const [isAsked, setAsked] = useState(false);
  const host = URL.canParse(url) ? new URL(url).host : '';
  return (
    <>
      <button type="button" className={css.link} onClick={() => setAsked(true)}>
        {children}
        {host !== '' && <span className={css.host}> ({host})</span>}
      </button>
      {isAsked && (
        <Dialog title="Open this address?" onClose={() => setAsked(false)}>
          <code className={css.address}>
            <VisibleText text={url} />
          </code>
          <p>It comes from a model or a tool. The other site learns that you opened it.</p>
          <div className={css.choices}>
            <Button onClick={() => setAsked(false)}>Stay here</Button>
            <a href={url} target="_blank" rel="noopener noreferrer" onClick={() => setAsked(false)}>
              Open it in a new tab
            </a>
          </div>
        </Dialog>
      )}
    </>
  );
};

/** An image is never fetched: its address could carry data out. */
const ImageText = ({ alt, url }: { readonly alt: string; readonly url: string }) => (
  <span className={css.image}>
    image not loaded: {alt && `${alt}, `}
    <VisibleText text={url} />
  </span>
);

type Render<T extends Nodes['type']> = (node: Extract<Nodes, { type: T }>, depth: number) => ReactNode;

const heading = (node: Extract<Nodes, { type: 'heading' }>, depth: number): JSX.Element => {
  const Tag = node.depth <= 2 ? 'h4' : 'h5';
  return <Tag dir={directionOf(textOf(node))}>{childrenOf(node, depth)}</Tag>;
};

const table: Render<'table'> = ({ children }, depth) => {
  const [head, ...rows] = children;
  return (
    <div className={css.tableBox} tabIndex={0} role="region" aria-label="Table of the answer">
      <table>
        <thead>
          <tr>
            {head?.children.map((cell, index) => (
              <th key={index} dir={directionOf(textOf(cell))}>
                {childrenOf(cell, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.children.map((cell, at) => (
                <td key={at} dir={directionOf(textOf(cell))}>
                  {childrenOf(cell, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};

/** Returns a name for the file of a block of code. */
const fileName = (lang: string | null | undefined): string =>
  `code.${/^[a-z0-9]{1,8}$/i.test(lang ?? '') ? lang : 'txt'}`;

const code: Render<'code'> = ({ value, lang }) => (
  <div className={css.codeBox}>
    <div className={css.codeHead}>
      <span>
        <VisibleText text={lang ?? 'text'} />
      </span>
      <IconButton
        icon="save"
        label="Save the code as a file"
        onClick={() => download(value, fileName(lang))}
      />
      <CopyButton text={value} label="Copy the code" />
    </div>
    <pre className={css.code} tabIndex={0} role="region" aria-label={`Code${lang ? ` in ${lang}` : ''}`}>
      <VisibleText text={value} />
    </pre>
  </div>
);

/** The elements that Markdown may become. Everything else is shown as its source text. */
const RENDER: { readonly [T in Nodes['type']]?: Render<T> } = {
  root: childrenOf,
  paragraph: (node, depth) => <p dir={directionOf(textOf(node))}>{childrenOf(node, depth)}</p>,
  text: ({ value }) => <VisibleText text={value} />,
  strong: (node, depth) => <strong>{childrenOf(node, depth)}</strong>,
  emphasis: (node, depth) => <em>{childrenOf(node, depth)}</em>,
  delete: (node, depth) => <del>{childrenOf(node, depth)}</del>,
  inlineCode: ({ value }) => (
    <code>
      <VisibleText text={value} />
    </code>
  ),
  break: () => <br />,
  thematicBreak: () => <hr />,
  blockquote: (node, depth) => (
    <blockquote dir={directionOf(textOf(node))}>{childrenOf(node, depth)}</blockquote>
  ),
  heading,
  list: (node, depth) =>
    node.ordered ? (
      <ol start={node.start ?? 1} dir={directionOf(textOf(node))}>
        {childrenOf(node, depth)}
      </ol>
    ) : (
      <ul dir={directionOf(textOf(node))}>{childrenOf(node, depth)}</ul>
    ),
  listItem: (node, depth) => (
    <li>
      {typeof node.checked === 'boolean' && (node.checked ? '☑ ' : '☐ ')}
      {childrenOf(node, depth)}
    </li>
  ),
  code,
  table,
  link: (node, depth) =>
    SAFE_LINK.test(node.url) ? (
      <UntrustedLink url={node.url}>{childrenOf(node, depth)}</UntrustedLink>
    ) : (
      <>{childrenOf(node, depth)}</>
    ),
  linkReference: childrenOf,
  image: ({ alt, url }) => <ImageText alt={alt ?? ''} url={url} />,
  imageReference: ({ alt }) => <ImageText alt={alt ?? ''} url="" />,
  html: ({ value }) => <VisibleText text={value} />,
};

const Node = ({ node, depth }: { readonly node: Nodes; readonly depth: number }): ReactNode => {
  if (depth > MAX_DEPTH) return <VisibleText text={textOf(node)} />;
  const render = RENDER[node.type] as ((node: Nodes, depth: number) => ReactNode) | undefined;
  return render ? <Fragment>{render(node, depth)}</Fragment> : null;
};

/** Longer blocks are shown as they are: parsing one would freeze the page. */
const MAX_BLOCK = 20_000;

const Block = memo(({ text }: { readonly text: string }) =>
  text.length > MAX_BLOCK ? (
    <Code text={text} label="Long text of the answer" />
  ) : (
    <Node node={fromMarkdown(text, OPTIONS)} depth={0} />
  ),
);
Block.displayName = 'Block';

/**
 * Shows Markdown of a model as elements. No text becomes HTML, and nothing is fetched. The elements
 * of a growing text stay when it ends.
 */
export const Markdown = ({
  text,
  isGrowing = false,
}: {
  readonly text: string;
  readonly isGrowing?: boolean;
}) => (
  <div className={css.markdown}>
    {isGrowing || text.length > MAX_BLOCK || isSplittable(text) ? (
      splitBlocks(text).map((block, index) => <Block key={index} text={block} />)
    ) : (
      <Block text={text} />
    )}
  </div>
);
