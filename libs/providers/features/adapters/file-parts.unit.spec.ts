import { describe, expect, it } from '@jest/globals';
import { findParameters } from '@antiphon/config';
import type { ProviderKind } from '@antiphon/config';
import type { ModelFile, ModelPrompt } from '@antiphon/providers-domain';
import { boundOfBody } from '../transport/request-format.js';
import { renderAnthropic, renderCached } from './anthropic-request.js';
import { toConverse } from './bedrock-format.js';
import { renderGemini } from './gemini-request.js';
import { renderOpenAi } from './openai-request.js';

const IMAGE: ModelFile = {
  media: { mediaType: 'image/png', width: 640, height: 480 },
  ...{ path: 'pictures/beach.png', digest: 'd1', data: 'aW1hZ2U=', at: 4 },
};
const PDF: ModelFile = {
  media: { mediaType: 'application/pdf', pages: 2, textBytes: 900 },
  ...{ path: 'papers/tides 1.pdf', digest: 'd2', data: 'cGRm', at: 9 },
};

const promptFor = (model: string, files: readonly ModelFile[] = [IMAGE, PDF]): ModelPrompt => ({
  ...{ provider: 'p', model, system: 'Be terse.', tools: [] },
  messages: [{ role: 'user', text: 'look read now', context: 'facts', files }],
});
const parametersOf = (kind: ProviderKind, model: string) =>
  findParameters({}, { name: 'p', kind }, model).parameters;

describe('images and documents of a message', () => {
  it('are blocks of base64 in the format of Anthropic, in their order', () => {
    const prompt = promptFor('claude-sonnet-4-5');
    const content = [
      { type: 'text', text: 'facts' },
      { type: 'text', text: 'look' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aW1hZ2U=' } },
      { type: 'text', text: ' read' },
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: 'cGRm' },
        title: 'papers/tides 1.pdf',
      },
      { type: 'text', text: ' now' },
    ];
    const parameters = parametersOf('anthropic', prompt.model);
    expect(renderAnthropic(prompt, parameters).messages).toEqual([{ role: 'user', content }]);
    const cached = renderCached(prompt, parameters, true);
    expect(JSON.stringify(cached.messages)).toContain('aW1hZ2U=');
  });

  it('are data URLs in the format of OpenAI, also with the system text in the message', () => {
    const prompt = promptFor('gpt-4o');
    const parts = [
      { type: 'text', text: 'facts' },
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,aW1hZ2U=' } },
      { type: 'text', text: ' read' },
      { type: 'file', file: { filename: 'tides 1.pdf', file_data: 'data:application/pdf;base64,cGRm' } },
      { type: 'text', text: ' now' },
    ];
    const parameters = parametersOf('openai', prompt.model);
    expect(renderOpenAi(prompt, parameters).messages.at(-1)).toEqual({ role: 'user', content: parts });
    const joined = renderOpenAi(prompt, { ...parameters, systemRole: 'user' }).messages;
    expect(joined).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Be terse.' }, ...parts] }]);
  });

  it('are inline data in the format of Gemini', () => {
    const { contents } = renderGemini(
      promptFor('gemini-2.5-flash'),
      parametersOf('gemini', 'gemini-2.5-flash'),
    );
    expect(contents).toEqual([
      {
        role: 'user',
        parts: [
          { text: 'facts' },
          { text: 'look' },
          { inlineData: { mimeType: 'image/png', data: 'aW1hZ2U=' } },
          { text: ' read' },
          { inlineData: { mimeType: 'application/pdf', data: 'cGRm' } },
          { text: ' now' },
        ],
      },
    ]);
  });

  it('are bytes with a format and a plain name in the format of Bedrock', () => {
    const prompt = promptFor('us.anthropic.claude-sonnet-4-5-v1:0');
    const body = renderAnthropic(prompt, parametersOf('bedrock', prompt.model));
    expect(JSON.stringify(toConverse({ ...body }))).toContain(
      JSON.stringify([
        { image: { format: 'png', source: { bytes: 'aW1hZ2U=' } } },
        { text: ' read' },
        { document: { format: 'pdf', source: { bytes: 'cGRm' }, name: 'papers-tides 1-pdf' } },
      ]).slice(1, -1),
    );
  });

  it('count by the rule of their vendor, and not by their base64', () => {
    const small = promptFor('gpt-4o');
    const large = promptFor('gpt-4o', [{ ...IMAGE, data: 'A'.repeat(4_000_000) }, PDF]);
    const boundOf = (prompt: ModelPrompt): number =>
      boundOfBody(JSON.stringify(renderOpenAi(prompt, parametersOf('openai', prompt.model))), prompt);
    expect(boundOf(large)).toBe(boundOf(small));
    expect(boundOf(promptFor('gpt-4o', []))).toBeLessThan(boundOf(small) - 1_000);
  });
});

describe('the inputs of a model', () => {
  it.each([
    ['anthropic', 'claude-sonnet-4-5', true, true],
    ['anthropic', 'claude-3-haiku-20240307', true, false],
    ['anthropic', 'claude-2.1', false, false],
    ['openai', 'gpt-4o', true, true],
    ['openai', 'gpt-5-mini', true, true],
    ['openai', 'gpt-4-turbo', true, false],
    ['openai', 'gpt-3.5-turbo', false, false],
    ['openai', 'o3-mini', false, false],
    ['openrouter', 'anthropic/claude-sonnet-4.5', true, true],
    ['openai-compatible', 'qwen2.5-vl-7b', true, false],
    ['openai-compatible', 'my-model', false, false],
    ['ollama', 'llama3.2-vision:11b', true, false],
    ['ollama', 'llama3.2', false, false],
    ['gemini', 'gemini-2.5-flash', true, true],
    ['bedrock', 'us.anthropic.claude-sonnet-4-5-v1:0', true, true],
    ['bedrock', 'amazon.nova-micro-v1:0', false, false],
    ['azure-openai', 'gpt-4o', true, false],
    ['scripted', 'scripted', true, true],
  ] as const)('at %s of %s are images: %s, documents: %s', (kind, model, images, documents) => {
    expect(parametersOf(kind, model)).toMatchObject({ images, documents });
  });

  it('are those of a setting, if there is one', () => {
    const parameters = [{ provider: '*', model: 'my-*', images: true }] as never;
    const found = findParameters({ parameters }, { name: 'p', kind: 'ollama' }, 'my-model');
    expect(found.parameters).toMatchObject({ images: true, documents: false });
  });
});
