import { setTimeout as pause } from 'node:timers/promises';
import type { ApprovalView } from '@antiphon/contracts/agent';
import type { TestStack } from '@antiphon/testing/stack';
import type { TakenTurn } from '@antiphon/testing/load';
import { readEvents } from '../stack-under-test.js';

/** An agent beside the others, whose every call waits for somebody's word. */
export const GUARDED_AGENT = 'guarded';
export const GUARDED_CONFIG = `
[[agents]]
id = "${GUARDED_AGENT}"
provider = "scripted"
tools = ["echo"]

[[agents.approvals]]
tool = "echo"
`;

/** Who is asked says yes to every other one, by what the call is about: the same word however often it is asked. */
const wordFor = ({ input }: Pick<ApprovalView, 'input'>): 'approve' | 'deny' =>
  /[02468]"\}$/.test(JSON.stringify(input)) ? 'approve' : 'deny';

const LOOK_EVERY_MS = 100;
const ANSWER_MS = 5_000;

const json = async <T>(url: string, body?: unknown): Promise<T | null> => {
  const headers = { 'content-type': 'application/json' };
  const post = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) };
  const answer = await fetch(url, { ...post, signal: AbortSignal.timeout(ANSWER_MS) });
  return answer.ok ? ((await answer.json()) as T) : null;
};

/** Answers whatever waits until it is over; what fails on the way is answered again, as a person would. */
export const answerApprovals = async (gateway: () => string, isOver: () => boolean): Promise<void> => {
  const answerAll = async (): Promise<void> => {
    const url = `${gateway()}/api/v1/approvals`;
    const page = await json<{ approvals: ApprovalView[] }>(`${url}?status=pending`);
    await Promise.all(
      (page?.approvals ?? []).map((one) => json(`${url}/${one.id}/answer`, { decision: wordFor(one) })),
    );
  };
  while (!isOver()) {
    await answerAll().catch(() => undefined);
    await pause(LOOK_EVERY_MS);
  }
};

/** What the log says of these turns' approvals that is not as it was answered: a granted call is made once, a denied one never. */
export const approvalFaults = async (stack: TestStack, turns: readonly TakenTurn[]): Promise<string[]> => {
  const faults: string[] = [];
  for (const { sessionId, turnId } of turns) {
    const events = await readEvents(stack, { stream: `session-${sessionId}` });
    const own = events.filter(({ data }) => data['turnId'] === turnId);
    const count = (type: RegExp): number => own.filter((event) => type.test(event.type)).length;
    const made = `${count(/^ToolCallRequested$/)}/${count(/^ToolCall(Completed|Failed|Unknown)$/)}`;
    const said = `${count(/^ApprovalRequested$/)}/${count(/^ApprovalGranted$/)}/${count(/^ApprovalDenied$/)}`;
    const asked = own.find(({ type }) => type === 'ApprovalRequested')?.data as ApprovalView | undefined;
    const word = asked ? wordFor(asked) : 'nobody was asked';
    const right = { approve: '1/1/0 1/1', deny: '1/0/1 0/0' }[word as 'approve' | 'deny'];
    if (`${said} ${made}` !== right) faults.push(`turn ${turnId}: ${word}, and the log says ${said} ${made}`);
  }
  return faults;
};
