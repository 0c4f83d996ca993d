import type { ApprovalView } from '@antiphon/contracts/agent';
import { sleep } from '@antiphon/kernel';
import type { SentTurn } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents } from '../stack-under-test.js';

/** An agent whose every tool call needs an approval. */
export const GUARDED_AGENT = 'guarded';
export const GUARDED_CONFIG = `
[[agents]]
id = "${GUARDED_AGENT}"
provider = "scripted"
tools = ["echo"]

[[agents.approvals]]
tool = "echo"
`;

const POLL_MS = 100;
const REQUEST_MS = 5_000;

type Decision = 'approve' | 'deny';

/**
 * Decides by the call's input, so that a repeated request gets the same decision: every other one
 * is approved.
 */
const decide = ({ input }: Pick<ApprovalView, 'input'>): Decision =>
  /[02468]"\}$/.test(JSON.stringify(input)) ? 'approve' : 'deny';

/** Returns other arguments for every other approved call; undefined for all other calls. */
const editOf = ({ input }: Pick<ApprovalView, 'input'>): ApprovalView['input'] | undefined =>
  /[048]"\}$/.test(JSON.stringify(input)) && input !== null && typeof input === 'object'
    ? { ...input, edited: true }
    : undefined;

const fetchJson = async <T>(url: string, body?: unknown): Promise<T | null> => {
  const headers = { 'content-type': 'application/json' };
  const post = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await fetch(url, { ...post, signal: AbortSignal.timeout(REQUEST_MS) });
  return response.ok ? ((await response.json()) as T) : null;
};

/**
 * Sends a decision for every pending approval of the tree of this agent until `isOver`. A failed
 * request is repeated. Returns the places in the tree that approvals had, as ids from the root.
 */
export const answerApprovals = async (
  gateway: () => string,
  root: string,
  isOver: () => boolean,
): Promise<ReadonlySet<string>> => {
  const places = new Set<string>();
  const answerPending = async (): Promise<void> => {
    const url = `${gateway()}/api/v1/approvals`;
    const page = await fetchJson<{ approvals: ApprovalView[] }>(`${url}?status=pending&root=${root}`);
    for (const { path = [] } of page?.approvals ?? []) places.add(path.join(' '));
    await Promise.all(
      (page?.approvals ?? []).map((one) =>
        fetchJson(`${url}/${one.id}/answer`, { decision: decide(one), input: editOf(one) }),
      ),
    );
  };
  while (!isOver()) {
    await answerPending().catch(() => undefined);
    await sleep(POLL_MS);
  }
  return places;
};

/** Events of one approval and its call: requested/granted/denied, then calls requested/ended. */
const EXPECTED = { approve: '1/1/0 1/1', deny: '1/0/1 0/0' } as const;

/**
 * Returns the turns whose log differs from the decisions. An approved call is made once, with the
 * edited arguments if there are any. A denied one is never made.
 */
export const findApprovalFaults = async (stack: TestStack, turns: readonly SentTurn[]): Promise<string[]> => {
  const faults: string[] = [];
  for (const { sessionId, turnId } of turns) {
    const events = await readEvents(stack, { stream: `session-${sessionId}` });
    const own = events.filter(({ data }) => data['turnId'] === turnId);
    const count = (type: RegExp): number => own.filter((event) => type.test(event.type)).length;
    const calls = `${count(/^ToolCallRequested$/)}/${count(/^ToolCall(Completed|Failed|Unknown)$/)}`;
    const decisions = `${count(/^ApprovalRequested$/)}/${count(/^ApprovalGranted$/)}/${count(/^ApprovalDenied$/)}`;
    const logged = `${decisions} ${calls}`;
    const requested = own.find(({ type }) => type === 'ApprovalRequested')?.data as ApprovalView | undefined;
    const decision = requested && decide(requested);
    const wanted = requested && (editOf(requested) ?? requested.input);
    const made = own.find(({ type }) => type === 'ToolCallRequested')?.data['input'];
    if (made !== undefined && JSON.stringify(made) !== JSON.stringify(wanted))
      faults.push(`turn ${turnId}: its call has other arguments than were approved`);
    if (decision === undefined || logged !== EXPECTED[decision])
      faults.push(`turn ${turnId}: ${decision ?? 'no approval was requested'}, and the log has ${logged}`);
  }
  return faults;
};
