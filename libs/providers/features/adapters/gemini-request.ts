import { budgetWithin, effortOf, userPartsOf } from '@antiphon/providers-domain';
import type {
  AssistantMessage,
  ModelMessage,
  ModelPrompt,
  ModelRequest,
  ModelTool,
  ToolMessage,
  UserMessage,
} from '@antiphon/providers-domain';
import type { ModelParameters } from '@antiphon/config';
import { returnedParts } from './gemini-state.js';
import { inputSchemaOf } from './tool-schemas.js';
import type { Fields } from '../transport/answer-builder.js';
import { portableName } from '../transport/request-format.js';

interface Content {
  readonly role: 'user' | 'model';
  readonly parts: readonly Fields[];
}

/** The vendor refuses contents without parts, and parts without text. */
const textPart = (text: string): Fields => ({ text: text.trim() === '' ? '(empty)' : text });

/**
 * Stands for the signature of a call of another model. The vendor names it for histories that its
 * model did not write. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const NO_SIGNATURE = { thoughtSignature: 'skip_thought_signature_validator' };

/** Models that refuse a call of the open turn without a signature. */
const CHECKS_SIGNATURES = /(?:^|\/)gemini-(?:[3-9]|\d\d)/;

/** The context of a turn is a part of its own, before the text. */
const userParts = (message: UserMessage): readonly Fields[] => [
  ...(message.context === undefined ? [] : [textPart(message.context)]),
  ...userPartsOf(message).map((part) =>
    'text' in part
      ? textPart(part.text)
      : { inlineData: { mimeType: part.file.media.mediaType, data: part.file.data } },
  ),
];

const callPart = ({ name, input }: AssistantMessage['toolCalls'][number], id: string): Fields => ({
  functionCall: { ...(id === '' ? {} : { id }), name: portableName(name), args: input },
});

/** Renders a message of another model, or of an earlier turn. */
const plainParts = ({ text, toolCalls }: AssistantMessage, model: string): readonly Fields[] => {
  const texts = text.trim() === '' && toolCalls.length > 0 ? [] : [textPart(text)];
  const isChecked = CHECKS_SIGNATURES.test(model);
  // Only the first call of a message is signed.
  const calls = toolCalls.map((call, index) => ({
    ...callPart(call, ''),
    ...(isChecked && index === 0 ? NO_SIGNATURE : {}),
  }));
  return [...texts, ...calls];
};

/** A part without text is only worth sending with its signature. */
const hasContent = (part: Fields): boolean => part['text'] !== '' || 'thoughtSignature' in part;

const assistantParts = (
  message: AssistantMessage,
  model: string,
  { reasoning }: ModelParameters,
): readonly Fields[] => {
  const returned = reasoning === 'none' ? null : returnedParts(message);
  if (returned === null) return plainParts(message, model);
  const rest = [...message.toolCalls];
  const parts = returned.flatMap((part): Fields[] => {
    if (part.kind === 'part') return hasContent(part.part) ? [part.part] : [];
    return rest.splice(0, 1).map((call) => ({ ...callPart(call, part.id), ...part.fields }));
  });
  // A text that was joined with an earlier one belongs before the calls.
  const isTextLost = message.text !== '' && !parts.some((part) => 'text' in part && !part['thought']);
  return isTextLost ? [textPart(message.text), ...parts] : parts;
};

/** Renders all results of a step as one content. The vendor's ids are those of its own calls. */
const resultParts = ({ results }: ToolMessage, calls: readonly Fields[]): readonly Fields[] =>
  results.map(({ name, content, isError }, index) => {
    const id = (calls[index]?.['functionCall'] as Fields | undefined)?.['id'];
    const response = isError ? { error: content } : { output: content };
    return {
      functionResponse: { ...(id === undefined ? {} : { id }), name: portableName(name), response },
    };
  });

const renderMessages = (
  messages: readonly ModelMessage[],
  model: string,
  parameters: ModelParameters,
): Content[] => {
  let calls: readonly Fields[] = [];
  return messages.map((message): Content => {
    if (message.role === 'user') return { role: 'user', parts: userParts(message) };
    if (message.role === 'tool') return { role: 'user', parts: resultParts(message, calls) };
    const parts = assistantParts(message, model, parameters);
    calls = parts.filter((part) => 'functionCall' in part);
    return { role: 'model', parts };
  });
};

/**
 * Renders a tool. `parametersJsonSchema` takes JSON Schema, and `parameters` a part of OpenAPI's
 * schemas, in which an object needs properties.
 * https://ai.google.dev/api/caching#FunctionDeclaration
 */
const renderTool = (tool: ModelTool, parameters: ModelParameters): Fields => {
  const { name, description } = tool;
  const schema = inputSchemaOf(tool, parameters);
  if (parameters.toolSchemas === 'full') return { name, description, parametersJsonSchema: schema };
  const isEmpty = Object.keys(schema['properties'] as Fields).length === 0;
  return { name, description, ...(isEmpty ? {} : { parameters: schema }) };
};

/** Renders the part of a body that its prompt determines, in the format of Gemini's API. */
export const renderGemini = (prompt: ModelPrompt, parameters: ModelParameters): Fields => {
  const { system, model, tools } = prompt;
  const contents = renderMessages(prompt.messages, model, parameters);
  const hasSystem = system.trim() !== '';
  const isApart = parameters.systemRole !== 'user';
  const [first, ...rest] = contents;
  const withSystem: readonly Content[] =
    hasSystem && !isApart && first !== undefined
      ? [{ ...first, parts: [textPart(system), ...first.parts] }, ...rest]
      : contents;
  return {
    contents: withSystem,
    ...(hasSystem && isApart ? { systemInstruction: { parts: [textPart(system)] } } : {}),
    ...(tools.length === 0
      ? {}
      : { tools: [{ functionDeclarations: tools.map((tool) => renderTool(tool, parameters)) }] }),
  };
};

/** Largest budget that every thinking model takes. https://ai.google.dev/gemini-api/docs/thinking */
const MAX_BUDGET = 24_576;

const thinkingConfig = (request: ModelRequest, parameters: ModelParameters, limit: number): Fields => {
  const { thinking } = request;
  if (thinking === undefined || parameters.thinking === 'none') return {};
  if (parameters.thinking !== 'budget')
    return { thinkingConfig: { thinkingLevel: effortOf(thinking), includeThoughts: true } };
  const budget = budgetWithin(thinking, limit);
  return budget === null
    ? {}
    : { thinkingConfig: { thinkingBudget: Math.min(budget, MAX_BUDGET), includeThoughts: true } };
};

/** Returns the fields of a request that its prompt does not determine. */
export const geminiFields = (request: ModelRequest, parameters: ModelParameters): Fields => {
  const limit = Math.min(request.maxOutputTokens, parameters.maxOutput ?? Infinity);
  const { temperature } = request;
  const isSent = temperature !== undefined && parameters.temperature;
  return {
    generationConfig: {
      maxOutputTokens: limit,
      ...(isSent ? { temperature } : {}),
      ...thinkingConfig(request, parameters, limit),
    },
  };
};
