import { describe, expect, it } from '@jest/globals';
import type { WorkflowDefinition } from '@antiphon/contracts/agent';
import { isAppError } from '@antiphon/kernel';
import fc from 'fast-check';
import { checkDefinition, shapeOf } from './check-definition.js';

type Node = WorkflowDefinition['nodes'][number];
const node = (id: string, needs: string[] = [], prompt = 'do it'): Node => ({
  id,
  agent: 'main',
  prompt,
  needs,
  attempts: 3,
});
const workflow = (...nodes: Node[]): WorkflowDefinition => ({ name: 'w', inputs: { goal: {} }, nodes });
const rules = { agentExists: (id: string) => id === 'main', maxDepth: 4 };

const refusal = (definition: WorkflowDefinition): { code: string; message: string; path: unknown } | null => {
  try {
    checkDefinition(definition, rules);
    return null;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { code: error.code, message: error.message, path: error.data['path'] };
  }
};

describe('a definition', () => {
  it('yields an order in which each node follows all its needs', () =>
    expect(
      checkDefinition(workflow(node('d', ['b', 'c']), node('b', ['a']), node('c', ['a']), node('a')), rules),
    ).toEqual(['a', 'b', 'c', 'd']));

  it('is refused with the path of its cycle from a node back to itself', () =>
    expect(
      refusal(workflow(node('start'), node('a', ['start', 'c']), node('b', ['a']), node('c', ['b']))),
    ).toEqual({
      code: 'WORKFLOW.CYCLE',
      message: 'the nodes need each other in a circle: a -> c -> b -> a',
      path: ['a', 'c', 'b', 'a'],
    }));

  it('is refused with the cycle alone, without the path to it', () =>
    expect(refusal(workflow(node('way', ['a']), node('a', ['a'])))?.path).toEqual(['a', 'a']));

  it.each([
    ['WORKFLOW.DUPLICATE_NODE', workflow(node('a'), node('a'))],
    ['WORKFLOW.UNKNOWN_NODE', workflow(node('a', ['b']))],
    ['WORKFLOW.UNKNOWN_AGENT', workflow({ ...node('a'), agent: 'missing' })],
    [
      'WORKFLOW.TOO_DEEP',
      workflow(...['a', 'b', 'c', 'd', 'e'].map((id, i, all) => node(id, all.slice(0, i)))),
    ],
    ['WORKFLOW.BAD_REFERENCE', workflow(node('a', [], '{{inputs.other}}'))],
    ['WORKFLOW.BAD_REFERENCE', workflow(node('a'), node('b', [], '{{nodes.a.output}}'))],
    ['WORKFLOW.BAD_REFERENCE', workflow(node('a', [], '{{ process.env }}'))],
    ['WORKFLOW.BAD_REFERENCE', workflow(node('a', [], '{{inputs.constructor}}'))],
  ])('is refused with %s', (code, definition) => expect(refusal(definition)?.code).toBe(code));

  it('may use the output of any direct or indirect need', () =>
    expect(
      refusal(workflow(node('a'), node('b', ['a']), node('c', ['b'], '{{nodes.a.output}} {{inputs.goal}}'))),
    ).toBeNull());
});

describe('shapeOf', () => {
  it('returns an order that respects every need, or a cycle', () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const graph = fc.tuple(...ids.map((id) => fc.subarray(ids).map((needs) => ({ id, needs }))));
    fc.assert(
      fc.property(graph, (nodes) => {
        const shape = shapeOf(nodes);
        const needsOf = (id: string) => nodes.find((one) => one.id === id)?.needs ?? [];
        if ('cycle' in shape) {
          expect(shape.cycle[0]).toBe(shape.cycle.at(-1));
          for (const [i, id] of shape.cycle.slice(0, -1).entries())
            expect(needsOf(id)).toContain(shape.cycle[i + 1]);
        } else
          for (const [i, id] of shape.order.entries())
            for (const need of needsOf(id)) expect(shape.order.slice(0, i)).toContain(need);
      }),
    );
  });
});
