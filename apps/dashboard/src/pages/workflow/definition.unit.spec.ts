import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { printDefinition, readDefinition } from './definition-text.js';
import {
  addEdge,
  addNode,
  changeNode,
  EMPTY,
  findCycle,
  nodeOfMessage,
  problemsOf,
  refuseEdge,
  removeNodes,
  type Definition,
} from './definition.js';
import { createEditor, isChanged } from './editor-store.js';
import { nearestNode, STEPS } from './graph-keys.js';
import { gridLayout } from './grid-layout.js';

const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,20}$/).filter((text) => text !== '__proto__');
const text = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 200 })
  .filter((given) => given.isWellFormed());
const prompt = fc.oneof(
  text,
  fc.constantFrom(
    'yes',
    '1e3',
    'null',
    '~',
    '- a\n- b',
    '# no comment',
    'a: b',
    '  two\n\n lines  \n',
    '{{inputs.x}}',
  ),
);

const definitions: fc.Arbitrary<Definition> = fc.record(
  {
    name: prompt,
    description: prompt,
    inputs: fc.dictionary(name, fc.record({ description: prompt, default: prompt }, { requiredKeys: [] }), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
    nodes: fc.uniqueArray(
      fc.record({
        id: name,
        agent: name,
        prompt,
        needs: fc.uniqueArray(name),
        attempts: fc.integer({ min: 1, max: 10 }),
      }),
      { selector: ({ id }) => id, minLength: 1, maxLength: 8 },
    ),
  },
  { requiredKeys: ['name', 'inputs', 'nodes'] },
);

const node = (id: string, needs: string[] = [], more: object = {}) => ({
  id,
  agent: 'main',
  prompt: 'do it',
  needs,
  attempts: 3,
  ...more,
});
const CHAIN: Definition = {
  name: 'chain',
  inputs: {},
  nodes: [node('a'), node('b', ['a']), node('c', ['b'])],
};
const AGENTS = new Set(['main']);

describe('the text of a workflow', () => {
  // @shows R5
  it.each(['yaml', 'json'] as const)('reads as the same definition that %s was printed from', (format) =>
    fc.assert(
      fc.property(definitions, (definition) =>
        expect(readDefinition(printDefinition(definition, format))).toEqual(definition),
      ),
      { numRuns: 100 },
    ),
  );

  it.each([
    ['nodes: []', 'name must be a text'],
    ['name: a\nnodes: [{id: b, agent: c, prompt: d, retries: 2}]', 'nodes[0] has “retries”'],
    ['name: a\nnodes: [{id: b, agent: c, prompt: d, attempts: 11}]', 'nodes[0].attempts must be'],
    ['name: a\ncolour: red\nnodes: []', 'has “colour”'],
    ['[1]', 'must be an object'],
  ])('is refused instead of read in part: %j', (given, reason) =>
    expect(() => readDefinition(given)).toThrow(reason),
  );
});

describe('an edge', () => {
  // @shows R4
  it('is refused if it closes a cycle, and the path is named', () => {
    expect(findCycle(CHAIN.nodes, 'c', 'a')).toEqual(['a', 'b', 'c']);
    expect(refuseEdge(CHAIN.nodes, 'c', 'a')).toContain('a → b → c → a');
    expect(refuseEdge(CHAIN.nodes, 'a', 'a')).toContain('itself');
    expect(refuseEdge(CHAIN.nodes, 'a', 'b')).toContain('already needs');
    expect(refuseEdge(CHAIN.nodes, 'a', 'c')).toBeNull();
  });

  it('never closes a cycle, in any order of drawn edges', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(6), fc.nat(6)), { maxLength: 40 }), (pairs) => {
        let drawn: Definition = { ...EMPTY, nodes: Array.from({ length: 7 }, (_, i) => node(`n${i}`)) };
        for (const [from, to] of pairs)
          if (refuseEdge(drawn.nodes, `n${from}`, `n${to}`) === null)
            drawn = addEdge(drawn, `n${from}`, `n${to}`);
        expect(problemsOf(drawn, AGENTS)).toEqual(new Map());
      }),
    ));
});

describe('a node', () => {
  it('keeps its needs and references when it is renamed', () => {
    const used = changeNode(CHAIN, 'b', { prompt: 'after {{nodes.a.output}} and {{ nodes.a.output }}' });
    const renamed = changeNode(used, 'a', { id: 'first' });
    expect(renamed.nodes[1]).toMatchObject({
      needs: ['first'],
      prompt: 'after {{nodes.first.output}} and {{nodes.first.output}}',
    });
    expect(problemsOf(renamed, AGENTS).size).toBe(0);
  });

  it('leaves no need of itself behind when it is deleted', () =>
    expect(removeNodes(CHAIN, new Set(['b'])).nodes).toEqual([node('a'), node('c')]));

  it('shows what the server would refuse', () => {
    const [added, id] = addNode(CHAIN, 'gone', []);
    const bad = changeNode(added, 'c', { prompt: '{{inputs.x}} {{nodes.c.output}} {{what}}' });
    const problems = problemsOf(bad, AGENTS);
    expect(problems.get(id)).toEqual(['has no prompt', 'names the agent “gone”, which is not there']);
    expect(problems.get('c')).toHaveLength(3);
    expect(nodeOfMessage('the prompt of node "c" has {{what}}', bad.nodes)).toBe('c');
    expect(nodeOfMessage('the nodes need each other in a circle: a -> b -> a', bad.nodes)).toBe('a');
  });

  it('is reached by arrows: along edges first, then the nearest', () => {
    const diamond = [node('top'), node('left', ['top']), node('right', ['top'])];
    const points = gridLayout(diamond);
    expect(nearestNode(diamond, points, 'top', STEPS['ArrowRight'] ?? { x: 1, y: 0 })).toBe('left');
    expect(nearestNode(diamond, points, 'left', STEPS['ArrowDown'] ?? { x: 0, y: 1 })).toBe('right');
    expect(nearestNode(diamond, points, '', STEPS['ArrowLeft'] ?? { x: -1, y: 0 })).toBe('top');
  });
});

describe('the editor', () => {
  it('takes every change back, and does it again', () => {
    const editor = createEditor({ definition: CHAIN, points: {} }, CHAIN);
    const states = [CHAIN];
    for (const next of ['a', 'b', 'c']) {
      editor.change({ definition: removeNodes(editor.state.get().definition, new Set([next])) });
      states.push(editor.state.get().definition);
    }
    expect(isChanged(editor.state.get())).toBe(true);
    for (const state of states.toReversed().slice(1)) {
      editor.undo();
      expect(editor.state.get().definition).toEqual(state);
    }
    expect(isChanged(editor.state.get())).toBe(false);
    for (const state of states.slice(1)) {
      editor.redo();
      expect(editor.state.get().definition).toEqual(state);
    }
  });

  it('takes back what was typed in one field as one step', () => {
    const editor = createEditor({ definition: CHAIN, points: {} }, CHAIN);
    for (const typed of ['n', 'na', 'name']) editor.change({ definition: { ...CHAIN, name: typed } }, 'name');
    editor.undo();
    expect(editor.state.get().definition).toEqual(CHAIN);
  });
});

describe('the grid', () => {
  it('gives 1,000 nodes places that do not overlap', () => {
    const nodes = Array.from({ length: 1_000 }, (_, i) =>
      node(`n${i}`, i > 2 ? [`n${Math.floor(i / 3)}`] : []),
    );
    const places = Object.values(gridLayout(nodes)).map(({ x, y }) => `${x} ${y}`);
    expect(new Set(places).size).toBe(1_000);
  });
});
