import type { ModelPrompt, ModelUsage } from '@antiphon/providers-domain';
import { countOf, fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { AnswerBuilder, Fields } from '../transport/answer-builder.js';

/** How a program is called, and what its lines mean. */
export interface CliProgram {
  /** Name that is looked up in the operator's `PATH`. */
  readonly command: string;
  /** Arguments that let it answer once, without tools of its own. The prompt is its input. */
  readonly args: (prompt: Pick<ModelPrompt, 'model'>) => readonly string[];
  readonly createReader: (answer: AnswerBuilder) => CliReader;
}

/** Reads the lines of one answer. */
export interface CliReader {
  /** Reads one line. Returns the error that the program reports in it, if any. */
  read(line: Fields): string | null;
  /** True once the program has said that its answer is whole. */
  isComplete(): boolean;
  usage(): ModelUsage | null;
}

/** Returns a usage, or null where a count is missing. */
const usageOf = (input: unknown, output: unknown, cached: unknown, written: unknown): ModelUsage | null => {
  const [inputTokens, outputTokens] = [countOf(input), countOf(output)];
  if (inputTokens === null || outputTokens === null) return null;
  const cacheReadTokens = Math.min(inputTokens, countOf(cached) ?? 0);
  const cacheWriteTokens = Math.min(inputTokens - cacheReadTokens, countOf(written) ?? 0);
  return {
    ...{ inputTokens, outputTokens },
    ...(cacheReadTokens > 0 ? { cacheReadTokens } : {}),
    ...(cacheWriteTokens > 0 ? { cacheWriteTokens } : {}),
  };
};

/** Base of the readers: the end of the answer, and its usage. */
abstract class Lines implements CliReader {
  protected complete = false;
  protected counted: ModelUsage | null = null;

  constructor(protected readonly answer: AnswerBuilder) {}

  abstract read(line: Fields): string | null;

  isComplete(): boolean {
    return this.complete;
  }

  usage(): ModelUsage | null {
    return this.counted;
  }
}

/** Lines of `claude --output-format stream-json`: events of the Messages API, and a result. */
class ClaudeLines extends Lines {
  /** True once deltas have arrived: whole messages repeat them. */
  private hasDeltas = false;

  read(line: Fields): string | null {
    const type = textOf(line['type']);
    if (type === 'stream_event') this.delta(fieldsOf(line['event']) ?? {});
    if (type === 'assistant') this.message(fieldsOf(line['message']) ?? {});
    return type === 'result' ? this.result(line) : null;
  }

  private delta(event: Fields): void {
    const delta = fieldsOf(event['delta']) ?? {};
    if (delta['type'] === 'text_delta') this.text(textOf(delta['text']));
    if (delta['type'] === 'thinking_delta') this.answer.thought(textOf(delta['thinking']));
  }

  private text(delta: string): void {
    this.hasDeltas ||= delta !== '';
    this.answer.text(delta);
  }

  private message(message: Fields): void {
    this.answer.model(textOf(message['model']));
    if (this.hasDeltas) return;
    for (const block of listOf(message['content'])) {
      const { type, text } = fieldsOf(block) ?? {};
      if (type === 'text') this.answer.text(textOf(text));
    }
  }

  private result(line: Fields): string | null {
    const usage = fieldsOf(line['usage']) ?? {};
    const [read, written] = [usage['cache_read_input_tokens'], usage['cache_creation_input_tokens']];
    const fresh = countOf(usage['input_tokens']);
    const input = fresh === null ? null : fresh + (countOf(read) ?? 0) + (countOf(written) ?? 0);
    this.counted = usageOf(input, usage['output_tokens'], read, written);
    if (line['is_error'] === true) return textOf(line['result']) || textOf(line['subtype']);
    this.complete = true;
    return null;
  }
}

/** Lines of `gemini --output-format stream-json`. */
class GeminiLines extends Lines {
  read(line: Fields): string | null {
    const type = textOf(line['type']);
    if (type === 'init') this.answer.model(textOf(line['model']));
    if (type === 'message' && line['role'] === 'assistant') this.answer.text(textOf(line['content']));
    return type === 'result' ? this.result(line) : null;
  }

  private result(line: Fields): string | null {
    const stats = fieldsOf(line['stats']) ?? {};
    this.counted = usageOf(stats['input_tokens'], stats['output_tokens'], stats['cached'], 0);
    if (line['status'] !== 'success')
      return textOf((fieldsOf(line['error']) ?? {})['message']) || textOf(line['status']);
    this.complete = true;
    return null;
  }
}

/** Lines of `codex exec --json`: items that are whole, and the end of the turn. */
class CodexLines extends Lines {
  read(line: Fields): string | null {
    const type = textOf(line['type']);
    if (type === 'item.completed') this.item(fieldsOf(line['item']) ?? {});
    if (type === 'turn.completed') this.end(fieldsOf(line['usage']) ?? {});
    const error = fieldsOf(line['error']) ?? {};
    if (type === 'turn.failed') return textOf(error['message']) || 'the turn failed';
    return type === 'error' ? textOf(line['message']) || 'an error' : null;
  }

  private item(item: Fields): void {
    if (item['type'] === 'agent_message') this.answer.text(textOf(item['text']));
    if (item['type'] === 'reasoning') this.answer.thought(textOf(item['text']));
  }

  private end(usage: Fields): void {
    const { input_tokens: input, output_tokens: output, cached_input_tokens: cached } = usage;
    this.counted = usageOf(input, output, cached, 0);
    this.complete = true;
  }
}

/** The programs that a provider of the kind `cli` may name. */
export const CLI_PROGRAMS = {
  claude: {
    command: 'claude',
    args: ({ model }) => [
      ...['--print', '--output-format', 'stream-json', '--verbose', '--include-partial-messages'],
      ...['--tools', '', '--strict-mcp-config', '--model', model],
    ],
    createReader: (answer) => new ClaudeLines(answer),
  },
  gemini: {
    command: 'gemini',
    args: ({ model }) => ['--output-format', 'stream-json', '--approval-mode', 'default', '--model', model],
    createReader: (answer) => new GeminiLines(answer),
  },
  codex: {
    command: 'codex',
    args: ({ model }) => [
      ...['exec', '--json', '--sandbox', 'read-only', '--skip-git-repo-check', '--color', 'never'],
      ...['--model', model, '-'],
    ],
    createReader: (answer) => new CodexLines(answer),
  },
} as const satisfies Readonly<Record<string, CliProgram>>;
