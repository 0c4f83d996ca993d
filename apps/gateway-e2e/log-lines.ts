import type { TestStack } from '@antiphon/testing/stack';

/** Line of a service's log. One that is no JSON has its text only. */
export type LogLine = Readonly<Record<string, unknown>>;

const PROCESSES = ['gateway', 'agent', 'memory', 'metering', 'sandbox'].map((service) => `${service}-1`);

/** Lines about a process, its engines and its schedules. They belong to no request. */
const OWN_LINES: ReadonlySet<unknown> = new Set([
  'ready',
  'stopping',
  'health check failed',
  'health check passed again',
  'leadership acquired',
  'isolation complete',
  'plugin loaded',
  'Temporal schedules created',
]);

const parse = (text: string): LogLine => {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { message: text };
  }
};

const readLog = (stack: TestStack, process: string): string => {
  try {
    return stack.readLog(process);
  } catch {
    return ''; // A hosted service writes to the log of its host.
  }
};

/** Returns a function that reads the lines of all services since now. */
export const markLogs = (stack: TestStack): (() => LogLine[]) => {
  const marks = PROCESSES.map((process) => [process, readLog(stack, process).length] as const);
  return () =>
    marks.flatMap(([process, from]) =>
      readLog(stack, process).slice(from).split('\n').filter(Boolean).map(parse),
    );
};

/** Returns the lines that belong to the work for a client. */
export const linesOfRequests = (lines: readonly LogLine[]): LogLine[] =>
  lines.filter(({ message, correlationId }) => correlationId !== undefined || !OWN_LINES.has(message));
