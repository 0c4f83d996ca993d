import { download } from '../../ui/download.js';
import { useEffect, useState } from 'react';
import { Button, CopyButton, css as ui, Panel } from '../../ui/ui.js';
import { printDefinition, readDefinition, type TextFormat } from './definition-text.js';
import type { EditorModel } from './use-editor.js';
import css from './workflow.module.css';

interface ToolsProps {
  readonly format: TextFormat;
  readonly setFormat: (format: TextFormat) => void;
  readonly apply: (text: string) => void;
  readonly isOff: boolean;
}

const TextTools = ({ format, setFormat, apply, isOff }: ToolsProps) => (
  <div className={css.textTools}>
    <label>
      Format{' '}
      <select value={format} onChange={(event) => setFormat(event.target.value as TextFormat)}>
        <option value="yaml">YAML</option>
        <option value="json">JSON</option>
      </select>
    </label>
    <label>
      Import a file{' '}
      <input
        type="file"
        accept=".yaml,.yml,.json"
        disabled={isOff}
        onChange={(event) => void event.target.files?.[0]?.text().then(apply)}
      />
    </label>
  </div>
);

/** The definition as YAML or JSON. What is written here replaces the graph once it is applied. */
export const TextView = ({ model, isOff }: { readonly model: EditorModel; readonly isOff: boolean }) => {
  const [format, setFormat] = useState<TextFormat>('yaml');
  const printed = printDefinition(model.definition, format);
  const [text, setText] = useState(printed);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    setText(printed);
    setProblem(null);
  }, [printed]);
  const apply = (given: string): void => {
    try {
      model.change(readDefinition(given));
      setProblem(null);
      model.setNotice('The text is applied. Undo brings the former graph back');
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const fileName = `${model.definition.name.replaceAll(/[^A-Za-z0-9_-]+/g, '-') || 'workflow'}.${format}`;
  return (
    <Panel
      title="Definition"
      isPadded
      actions={
        <>
          <CopyButton text={text} label="Copy the text" />
          <Button onClick={() => download(text, fileName)}>Download</Button>
        </>
      }
    >
      <div className={css.form}>
        <TextTools format={format} setFormat={setFormat} apply={apply} isOff={isOff} />
        <textarea
          className={`${ui.input} ${css.source}`}
          aria-label="Definition as text"
          aria-invalid={problem !== null}
          spellCheck={false}
          rows={22}
          value={text}
          disabled={isOff}
          onChange={(event) => setText(event.target.value)}
        />
        {problem !== null && (
          <p className={css.error} role="alert">
            {problem}
          </p>
        )}
        <div className={ui.dialogFoot}>
          <Button disabled={text === printed} onClick={() => setText(printed)}>
            Discard
          </Button>
          <Button look="primary" disabled={isOff || text === printed} onClick={() => apply(text)}>
            Apply
          </Button>
        </div>
      </div>
    </Panel>
  );
};
