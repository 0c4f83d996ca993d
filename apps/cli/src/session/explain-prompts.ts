import { upcast } from '@antiphon/contracts/events';
import type { PromptShape, SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import type { SessionExport } from '@antiphon/contracts/log';
import type { BudgetEventOf } from '@antiphon/contracts/metering';
import { renderTable } from '../gateway/agent-views.js';
import type { CommandContext } from '../output.js';
import { isExportFile, loadSession } from './diff-sessions.js';

type Completed = SessionEventOf<'ModelCallCompleted'>['data'];

/** Differences from the last call of the session, for which its cached prompt is not read whole. */
const CAUSES = {
  model: 'another provider or model',
  tools: 'the tools changed',
  system: 'the system text changed',
  window: 'the window of recent turns moved',
  context: 'the last turn had facts of its own, which are no longer in it',
  expired: 'over five minutes since the last call',
} as const;
type PromptCause = keyof typeof CAUSES;

/** Time for which vendors keep a prompt that is not read, ms. */
const KEPT_MS = 300_000;

/** A completed model call, what it read from the prompt cache, and what made it read less. */
export interface ExplainedCall {
  readonly turnId: string;
  readonly attempt: number;
  readonly model: string;
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly estimated: boolean;
  readonly causes: readonly PromptCause[];
}

/** Returns true if messages that the last request had are not in this one any more. */
const hasMoved = (
  was: PromptShape | undefined,
  is: PromptShape | undefined,
  isSameTurn: boolean,
): boolean => {
  if (!was || !is) return false;
  return isSameTurn ? is.earlierMessages < was.earlierMessages : is.earlierMessages < was.messages;
};

const causesOf = (before: Completed | undefined, call: Completed): PromptCause[] => {
  if (!before) return [];
  const [was, is] = [before.prompt, call.prompt];
  const isOther = (part: 'toolsDigest' | 'systemDigest'): boolean =>
    was !== undefined && is !== undefined && was[part] !== is[part];
  const isSameTurn = before.turnId === call.turnId;
  const differs: Record<PromptCause, boolean> = {
    model: before.provider !== call.provider || before.model !== call.model,
    tools: isOther('toolsDigest'),
    system: isOther('systemDigest'),
    window: hasMoved(was, is, isSameTurn),
    context: was?.hasContext === true && !isSameTurn,
    expired: Date.parse(call.completedAt) - Date.parse(before.completedAt) > KEPT_MS,
  };
  return (Object.keys(differs) as PromptCause[]).filter((cause) => differs[cause]);
};

/** Explains the completed calls of a session, in their order. */
export const explainCalls = ({ events }: Pick<SessionExport, 'events'>): ExplainedCall[] => {
  const calls = events
    .map((recorded) => upcast(recorded) as unknown as SessionEvent)
    .flatMap((event) => (event.type === 'ModelCallCompleted' ? [event.data] : []));
  return calls.map((call, index) => ({
    turnId: call.turnId,
    attempt: call.attempt,
    model: `${call.provider}/${call.model}`,
    inputTokens: call.usage.inputTokens,
    cacheReadTokens: call.usage.cacheReadTokens ?? 0,
    cacheWriteTokens: call.usage.cacheWriteTokens ?? 0,
    estimated: call.usage.estimated,
    causes: causesOf(calls[index - 1], call),
  }));
};

const percent = (part: number, whole: number): string =>
  whole === 0 ? '0 %' : `${Math.round((100 * part) / whole)} %`;

const renderCalls = (calls: readonly ExplainedCall[]): string =>
  renderTable(
    ['CALL', 'MODEL', 'INPUT', 'READ', 'WRITTEN', 'CAUSE'],
    calls.map(({ attempt, model, inputTokens, cacheReadTokens, cacheWriteTokens, causes }) => [
      String(attempt),
      model,
      String(inputTokens),
      `${cacheReadTokens} (${percent(cacheReadTokens, inputTokens)})`,
      String(cacheWriteTokens),
      causes.map((cause) => CAUSES[cause]).join(', '),
    ]),
  );

/** Estimated charge of a call whose vendor tells the usage later. */
export interface LateUsage {
  readonly turnId: string;
  readonly attempt: number;
  readonly model: string;
  readonly generationId: string;
  /** Usage as the vendor counted it; null until it is known. */
  readonly figure: { readonly inputTokens: number; readonly outputTokens: number } | null;
}

type CallEnd = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>;
type Corrected = BudgetEventOf<'BudgetCorrected'>['data'];

const isLate = (event: SessionEvent): event is CallEnd =>
  (event.type === 'ModelCallCompleted' || event.type === 'ModelCallAborted') &&
  event.data.generationId !== undefined;

/** Reads the corrections of estimated charges. The file of an export has none. */
const readLateUsage = async (
  { http, cwd }: CommandContext,
  fileOrId: string,
  { events }: SessionExport,
): Promise<LateUsage[]> => {
  const calls = events.map((recorded) => upcast(recorded) as unknown as SessionEvent).filter(isLate);
  const client = calls.length === 0 || isExportFile(cwd, fileOrId) ? null : await http();
  const figureOf = async ({ data }: CallEnd): Promise<LateUsage['figure']> => {
    const stream = `budget-${data.reservationId}`;
    const page = await client?.readEvents({ query: { stream, type: 'BudgetCorrected', limit: 1 } });
    const corrected = page?.events[0]?.data as Corrected | undefined;
    return corrected ? { inputTokens: corrected.inputTokens, outputTokens: corrected.outputTokens } : null;
  };
  return Promise.all(
    calls.map(async (call) => {
      const { turnId, attempt, provider, model, generationId = '' } = call.data;
      return { turnId, attempt, model: `${provider}/${model}`, generationId, figure: await figureOf(call) };
    }),
  );
};

const renderLateUsage = ({ attempt, generationId, figure }: LateUsage): string =>
  figure === null
    ? `call ${attempt} is charged as an estimate; its vendor has told no usage of ${generationId} yet`
    : `call ${attempt} was charged as an estimate; its vendor counted ${figure.inputTokens} + ${figure.outputTokens} tokens`;

/** Shows what each call of a session read from the prompt cache, and charges that changed later. */
export const explainPrompts = async (context: CommandContext, fileOrId: string): Promise<void> => {
  const session = await loadSession(context, fileOrId);
  const calls = explainCalls(session);
  const lateUsage = await readLateUsage(context, fileOrId, session);
  const sum = (field: 'inputTokens' | 'cacheReadTokens' | 'cacheWriteTokens'): number =>
    calls.reduce((total, call) => total + call[field], 0);
  const [inputTokens, cacheReadTokens] = [sum('inputTokens'), sum('cacheReadTokens')];
  const total = { inputTokens, cacheReadTokens, cacheWriteTokens: sum('cacheWriteTokens') };
  const share = percent(cacheReadTokens, inputTokens);
  const table =
    calls.length === 0
      ? 'no model call has completed'
      : `${renderCalls(calls)}\n${cacheReadTokens} of ${inputTokens} input tokens read from the cache (${share})`;
  context.output.result(
    { sessionId: session.sessionId, calls, lateUsage, total },
    [table, ...lateUsage.map(renderLateUsage)].join('\n'),
  );
};
