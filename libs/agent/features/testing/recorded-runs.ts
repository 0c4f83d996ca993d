/** Tool calls with stored Temporal histories: the outcomes of their tries, in order. */
export const RECORDED_TOOLS: Readonly<Record<string, readonly ('lost' | 'unavailable' | 'answered')[]>> = {
  'tool-retried': ['lost', 'unavailable', 'answered'],
  'tool-given-up': ['lost', 'lost', 'lost'],
};

/** Runs with stored Temporal histories in `libs/agent/workflows/histories`, one file each. */
export const RECORDED_RUNS: Readonly<Record<string, { readonly source: string; readonly cancel?: boolean }>> =
  {
    chain: {
      source: `
name: chain
nodes:
  - { id: plan, agent: main, prompt: plan }
  - { id: implement, agent: second, needs: [plan], prompt: 'do {{nodes.plan.output}}' }
  - { id: review, agent: main, needs: [plan, implement], prompt: 'review {{nodes.implement.output}}' }
`,
    },
    diamond: {
      source: `
name: diamond
nodes:
  - { id: top, agent: main, prompt: top }
  - { id: left, agent: main, needs: [top], prompt: left }
  - { id: right, agent: second, needs: [top], prompt: right }
  - { id: bottom, agent: main, needs: [left, right], prompt: bottom }
`,
    },
    retried: { source: 'name: retried\nnodes: [{ id: flaky, agent: main, prompt: fails once }]' },
    failed: {
      source: `
name: failed
nodes:
  - { id: broken, agent: main, prompt: fails always, attempts: 1 }
  - { id: after, agent: main, needs: [broken], prompt: never }
`,
    },
    cancelled: {
      source: 'name: cancelled\nnodes: [{ id: endless, agent: main, prompt: hangs }]',
      cancel: true,
    },
  };
