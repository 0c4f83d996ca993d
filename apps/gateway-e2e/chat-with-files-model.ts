import { randomUUID } from 'node:crypto';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';

const TOOLS = ['ls', 'read', 'search', 'edit', 'write', 'rm'] as const;
/** One agent on the scripted provider, and one on each vendor's streaming format. */
export const ROLES = ['assistant', 'claude-assistant', 'gpt-assistant'] as const;
type Role = (typeof ROLES)[number];
export const CODER = 'coder';

/** One model call of a turn. */
interface Step {
  readonly thought?: string;
  readonly tool?: readonly [(typeof TOOLS)[number], object];
  readonly text?: string;
}

/** The steps of a message, which every provider plays. */
const tidy = (role: Role): Step[] => [
  { thought: 'I have to see the folder.', tool: ['ls', { path: role }] },
  { tool: ['read', { path: `${role}/notes.md` }] },
  { tool: ['write', { path: `${role}/summary.md`, content: 'Milk and bread.\n' }] },
  { tool: ['rm', { path: `${role}/old.md` }] },
  { text: 'The folder is tidy.' },
];
const TEST = `import { test } from 'node:test';
import assert from 'node:assert';
import { slug } from '../src/slug.mjs';
test('a slug has single hyphens', () => assert.equal(slug('Plain  English, please'), 'plain-english-please'));
`;
export const BROKEN = `const isLetter = /[a-z0-9]+/;\n\nexport const slug = (title) => title.toLowerCase().replace(/[^a-z0-9]/g, '-');\n`;
export const MENDED = BROKEN.replace('/[^a-z0-9]/g', '/[^a-z0-9]+/g');
/** A repository whose test fails. */
export const REPOSITORY = {
  'repo/test/slug.test.mjs': TEST,
  'repo/src/slug.mjs': BROKEN,
  'repo/README.md': '# Slugs\n',
};
const MEND: Step[] = [
  { tool: ['ls', { path: 'repo', recursive: true }] },
  { tool: ['read', { path: 'repo/test/slug.test.mjs' }] },
  { tool: ['search', { path: 'repo', query: 'export const slug' }] },
  { tool: ['read', { path: 'repo/src/slug.mjs' }] },
  { tool: ['edit', { path: 'repo/src/slug.mjs', old: '/[^a-z0-9]/g', new: '/[^a-z0-9]+/g' }] },
  { tool: ['write', { path: 'repo/CHANGES.md', content: 'A slug has single hyphens.\n' }] },
  { text: 'The test passes.' },
];
const MESSAGES: readonly { readonly user: string; readonly steps: readonly Step[] }[] = [
  ...ROLES.map((role) => ({ user: `tidy the folder of ${role} now`, steps: tidy(role) })),
  { user: 'correct the failing test', steps: MEND },
];

/** The steps as a file of the scripted provider. */
export const scenario = {
  version: 1,
  replies: MESSAGES.flatMap(({ user, steps }) =>
    steps.map(({ thought, tool, text }, index) => ({
      when: { user, step: index + 1 },
      play: [
        ...(thought === undefined ? [] : [{ thought }]),
        ...(tool ? [{ tool: { name: tool[0], input: tool[1] } }] : []),
        ...(text === undefined ? [] : [{ text, delayMs: 20 }]),
      ],
    })),
  ),
};

/** Configuration with the agents of all roles. */
export const configOf = (mockUrl: string, scenarioFile: string): string => `
[gateway]
host = "127.0.0.1"
port = 0

[[providers]]
name = "scripted"
kind = "scripted"
base_url = "file:${scenarioFile}"

[[providers]]
name = "anthropic"
kind = "anthropic"
base_url = "${mockUrl}"
api_key_env = "E2E_PROVIDER_KEY"

[[providers]]
name = "openai"
kind = "openai"
base_url = "${mockUrl}/v1"
api_key_env = "E2E_PROVIDER_KEY"
${[...ROLES, CODER]
  .map((role) => {
    const provider = role.startsWith('claude') ? 'anthropic' : role.startsWith('gpt') ? 'openai' : 'scripted';
    return `
[[agents]]
id = "agent-${role}"
role = "${role}"
provider = "${provider}"
model = "m"
tools = ${JSON.stringify(role === CODER ? TOOLS.slice(0, 5) : TOOLS)}
`;
  })
  .join('')}`;

/** Starts a provider that plays the steps in both vendors' formats. */
export const startPlayingModel = (): Promise<MockModel> =>
  startMockModel(({ user, toolResults }) => {
    const steps = MESSAGES.find((message) => user.includes(message.user))?.steps ?? [];
    const { thought, tool, text } = steps[toolResults.length] ?? { text: 'I see.' };
    return {
      ...(thought === undefined ? {} : { thought: [thought] }),
      ...(text === undefined ? {} : { text: [text] }),
      ...(tool ? { tools: [{ id: `call_${randomUUID()}`, name: tool[0], input: tool[1] }] } : {}),
    };
  });
