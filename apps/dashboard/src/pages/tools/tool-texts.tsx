import type { LogEvent, RouteReply } from '@antiphon/client';
import { Link } from '../../data/router.js';
import { css as ui } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import pages from '../pages.module.css';

export type Catalogue = RouteReply<'listTools'>;
export type Tool = Catalogue['tools'][number];

const CALLS: ReadonlySet<string> = new Set([
  ...['ToolCallRequested', 'ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown'],
]);
const AGENTS = /^Agent(?:Spawned|Redefined|OverridesSet|Terminated)$/;

/** Selects the events after which the catalogue may be another one. */
export const changesTools = ({ type }: LogEvent): boolean => CALLS.has(type) || AGENTS.test(type);

const MAX_BEGINNING = 140;

/** Returns the beginning of a description for the list, by whole words. The detail has all of it. */
export const beginningOf = (text: string): string => {
  if (text.length <= MAX_BEGINNING) return text;
  const beginning = text.slice(0, MAX_BEGINNING);
  const end = beginning.lastIndexOf(' ');
  return `${end > 0 ? beginning.slice(0, end) : beginning} …`;
};

/** Says which calls of a tool a person has to approve. */
export const approvalOf = ({ agents, agentCount }: Tool): string => {
  const asked = agents.filter(({ approval }) => approval !== null).length;
  if (agents.length === 0) return agentCount === 0 ? 'no agent has it' : 'not shown to you';
  if (asked === 0) return 'none';
  return asked === agents.length && agents.length === agentCount ? 'each call' : `for ${asked} of its agents`;
};

interface NamesProps {
  readonly names: readonly string[];
  readonly none: string;
  /** Beginning of the path of each name's page. */
  readonly linkTo?: string;
}

export const Names = ({ names, none, linkTo }: NamesProps) =>
  names.length === 0 ? (
    <span className={ui.muted}>{none}</span>
  ) : (
    <span className={pages.tags}>
      {names.map((name) => (
        <span key={name} className={pages.tag}>
          {linkTo === undefined ? (
            <VisibleText text={name} />
          ) : (
            <Link to={`${linkTo}${encodeURIComponent(name)}`}>{name}</Link>
          )}
        </span>
      ))}
    </span>
  );

/** Names of the kinds of tools: in a table, and in a sentence. */
export const SOURCES: Readonly<Record<Tool['source'], { readonly short: string; readonly long: string }>> = {
  native: { short: 'native', long: 'native: a part of Antiphon' },
  plugin: { short: 'plug-in', long: 'a plug-in in the sandbox' },
  remote: { short: 'remote', long: 'a program that serves it' },
  mcp: { short: 'MCP', long: 'an MCP server' },
};
