import { describe, expect, it } from '@jest/globals';
import type { ModelPrompt } from '@antiphon/providers-domain';
import { createBodyRenderer } from './request-format.js';

const prompt = {
  ...{ provider: 'first', model: 'm', system: 'Be kind.', tools: [] },
  messages: [{ role: 'user', text: 'hi' }],
} as unknown as ModelPrompt;

describe('the renderer of a request', () => {
  it('renders a prompt once for its bound and its request, and again after any change', () => {
    let count = 0;
    const render = createBodyRenderer(({ model, system, messages }, form: { readonly name: string }) => {
      count += 1;
      return { model, system, messages, form: form.name };
    });
    const form = { name: 'a' };
    const { model, system, messages } = prompt;
    const bodies = [{ limit: 1 }, { limit: 4_096, stream: true }].map((fields) => [
      JSON.parse(render({ ...prompt }, form, fields)),
      { ...fields, model, system, messages, form: 'a' },
    ]);
    for (const [body, expected] of bodies) expect(body).toEqual(expected);
    expect(count).toBe(1);
    for (const change of [{ model: 'n' }, { system: '' }, { messages: [...messages] }])
      expect(JSON.parse(render({ ...prompt, ...change }, form, { limit: 1 }))).toMatchObject(change);
    expect(JSON.parse(render(prompt, { name: 'b' }, { limit: 1 }))).toMatchObject({ form: 'b' });
    expect(count).toBe(5);
  });
});
