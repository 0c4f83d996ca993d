import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from './chromium.js';
import { startQuickStack, twoVendorConfig } from './stack-under-test.js';

/** Text that a hostile model may send: nothing of it may run or be fetched. */
export const HOSTILE =
  '<img src=x onerror="window.hacked=1"> ![pixel](https://evil.example/p.png) ' +
  '[click](javascript:window.hacked=2) <script>window.hacked=3</script> pay \u202Etxt.exe';

/**
 * Calculates by a tool when it is asked to, never ends when it is asked to hold, and answers with
 * hostile Markdown otherwise.
 */
const startModel = (released: Promise<void>): Promise<MockModel> =>
  startMockModel(({ user, toolResults }) => {
    if (user.includes('hold')) return { reply: { text: ['never'] }, before: () => released };
    // The note about changed arguments is in a line of its own.
    const result = toolResults.at(-1)?.split('\n').at(-1);
    if (result !== undefined) return { text: ['It is ', `**${result}**.`] };
    if (user.includes('calculate'))
      return {
        text: ['Let me see. '],
        tools: [{ id: 'call_1', name: 'calculator', input: { expression: '40 + 2' } }],
      };
    if (user.includes('write the file'))
      return {
        tools: [{ id: 'call_2', name: 'write', input: { path: 'notes.md', content: 'one\ntwo\n' } }],
      };
    return { text: ['## Answer\n\n', HOSTILE] };
  });

/** The calculator of the agent `gpt` needs an approval. */
const GUARDED = `
[[agents.approvals]]
tool = "calculator"
`;

/** As by default, and an agent whose changes of files need an approval. */
export const GUARDED_WITH_WRITER = `${GUARDED}
[[agents]]
id = "writer"
workspace = "*"
name = "Writer"
provider = "openai"
model = "gpt-4o"
tools = ["write"]

[[agents.approvals]]
tool = "write"
`;

export interface DashboardWorld {
  readonly stack: TestStack;
  readonly mock: MockModel;
  readonly browser: Browser;
  readonly page: Page;
  /** Requests to any other origin, and reports of the page's policy. */
  readonly leaks: string[];
  /** Errors of the page and its console. */
  readonly errors: string[];
  stop(): Promise<void>;
}

const watch = (page: Page, origin: string, leaks: string[], errors: string[]): void => {
  page.on('request', (request) => {
    const url = new URL(request.url());
    const isOwn =
      url.origin === origin ||
      url.origin === origin.replace('http', 'ws') ||
      url.protocol === 'blob:' ||
      url.protocol === 'data:';
    if (url.pathname === '/csp-report') leaks.push(`${request.url()} ${request.postData() ?? ''}`);
    else if (!isOwn) leaks.push(request.url());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
};

export interface DashboardOptions {
  /** Model of both agents. Default: it calculates by a tool, and sends hostile Markdown. */
  readonly model?: MockScript;
  /** Configuration after the agents. Default: the calculator of the agent `gpt` needs an approval. */
  readonly settings?: string;
  /** Arguments of Chromium. */
  readonly args?: readonly string[];
  /** Lines of `[gateway]`, such as a token. */
  readonly gateway?: string;
  readonly scale?: Parameters<typeof startQuickStack>[1];
  /** Returns the address at which the browser opens the dashboard, such as a network that fails. */
  readonly through?: (stack: TestStack) => Promise<string>;
}

/** Starts a stack with a guarded tool, and Chromium on its dashboard. */
export const startDashboardWorld = async (options: DashboardOptions = {}): Promise<DashboardWorld> => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const mock = await (options.model ? startMockModel(options.model) : startModel(released));
  const stack = await startQuickStack(
    twoVendorConfig(mock.url, options.gateway) + (options.settings ?? GUARDED),
    options.scale,
  );
  const browser = await launchChromium(options.args);
  const origin = (await options.through?.(stack)) ?? stack.gatewayUrl;
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, baseURL: origin });
  page.setDefaultTimeout(10_000);
  const leaks: string[] = [];
  const errors: string[] = [];
  watch(page, origin, leaks, errors);
  const stop = async (): Promise<void> => {
    release();
    await browser.close();
    await stack.stop();
    await mock.close();
  };
  return { stack, mock, page, browser, leaks, errors, stop };
};

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns the violations of WCAG 2.2 AA on the page, one line each. */
export const findViolations = async (page: Page): Promise<string[]> => {
  // By the debugger: the policy of the page refuses an added script.
  await page.evaluate(AXE);
  const run = `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })`;
  const { violations } = (await page.evaluate(run)) as {
    violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[];
  };
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} at ${target.join(' ')}: ${failureSummary}`),
  );
};

/** Reads a path of the API as JSON. */
export const readApi = async <T>({ stack }: Pick<DashboardWorld, 'stack'>, path: string): Promise<T> => {
  const response = await fetch(stack.gatewayUrl + path);
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
};

/**
 * Saves pictures of a page for a person to look at, at two widths in both themes, to the folder of
 * `ANTIPHON_SCREENSHOTS`. Without it, does nothing.
 */
export const savePictures = async (page: Page, name: string): Promise<void> => {
  const folder = process.env['ANTIPHON_SCREENSHOTS'];
  if (folder === undefined) return;
  const size = page.viewportSize() ?? { width: 1_440, height: 900 };
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1_360, 390]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
    }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(size);
};
