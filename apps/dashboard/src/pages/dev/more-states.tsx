import { useState } from 'react';
import { BarChart } from '../../ui/bar-chart.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { Diff } from '../../ui/diff.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import { formatUsd } from '../../ui/format.js';
import { Icon, ICONS } from '../../ui/icon.js';
import { Code, LongText } from '../../ui/json.js';
import { PresentMark } from '../../ui/present-mark.js';
import { ShowMore } from '../show-more.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { Button, Field, Panel } from '../../ui/ui.js';
import { VirtualRows } from '../../ui/virtual-rows.js';
import { Meter } from '../money/meter.js';
import pages from '../pages.module.css';
import { LONG } from './samples.js';

/** Shows forms with errors, and what asks before it acts. */
export const FormStates = () => {
  const [isAsking, setAsking] = useState(false);
  const { errors, props } = useCheckedForm(() => undefined);
  return (
    <Panel title="Forms" isPadded>
      <form {...props} className={pages.stack}>
        <Field label="Sample name" hint="Submit it empty to see its error." error={errors['name']}>
          {(given) => <input {...given} name="name" required />}
        </Field>
        <Field label="Sample number" error={errors['number'] ?? 'Enter 1 or more.'}>
          {(given) => <input {...given} name="number" type="number" min={1} defaultValue={0} />}
        </Field>
        <div className={pages.tags}>
          <Button type="submit">Submit the sample</Button>
          <Button look="danger" onClick={() => setAsking(true)}>
            Ask first
          </Button>
          <CopyRecord noun="sample" json={{ value: { sample: true } }} command="antiphon status" />
        </div>
      </form>
      {isAsking && (
        <ConfirmDialog
          title="Remove the sample?"
          action="Remove"
          permission="sessions:write"
          onConfirm={() => Promise.reject(new Error('a sample cannot be removed'))}
          onClose={() => setAsking(false)}
        >
          <p>A refused action leaves this dialog open with its reason.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
};

const METERS = [
  { label: 'Without a limit', settled: 12_000, reserved: 0, limit: null },
  { label: 'Partly spent', settled: 2_400_000, reserved: 900_000, limit: 5_000_000 },
  { label: 'Full', settled: 5_000_000, reserved: 0, limit: 5_000_000 },
] as const;

const BARS = [
  { name: 'A short stage', low: 1, high: 2, text: 'p50 1 s · p95 2 s' },
  { name: LONG.slice(0, 120), low: 4, high: 9, text: 'p50 4 s · p95 9 s' },
  { name: 'Nothing', low: 0, high: 0, text: 'p50 0 s · p95 0 s' },
];

const LIST = { hasMore: true, isReadingMore: false, showMore: () => undefined };

/** Shows meters, all icons, long code and rows that are drawn when they come into view. */
export const ValueStates = () => (
  <>
    <Panel title="Meters" isPadded>
      <div className={pages.stack}>
        {METERS.map((meter) => (
          <Meter key={meter.label} {...meter} format={formatUsd} />
        ))}
      </div>
    </Panel>
    <Panel title="Bars" isPadded>
      <BarChart label="Sample bars" bars={BARS} />
    </Panel>
    <Panel title="Icons" isPadded>
      <div className={pages.tags}>
        {ICONS.map((name) => (
          <span key={name} className={pages.tag}>
            <Icon name={name} /> {name}
          </span>
        ))}
      </div>
    </Panel>
    <Panel title="Code" isPadded actions={<PresentMark />}>
      <Code text={LONG} label="Sample code" />
    </Panel>
    <Panel title="Text of a cell" isPadded>
      <LongText text="a sample text" label="Sample text" />
    </Panel>
    <Panel title="Changes" isPadded>
      <Diff text={'@@ -1 +1,2 @@\n-one\n+two\n+three\n'} label="Sample changes" />
    </Panel>
    <Panel title="Rows">
      <VirtualRows
        label="Sample rows"
        count={1_000}
        rowHeight={34}
        columns={['Row', 'Text']}
        row={(index) => (
          <>
            <span role="cell">{index + 1}</span>
            <span role="cell">sample</span>
          </>
        )}
      />
      <ShowMore list={LIST} what="rows" count={1_000} />
      <ShowMore list={{ ...LIST, isReadingMore: true }} what="rows" count={1_000} />
      <div className={`${pages.filters} ${pages.pad}`}>
        <TypedFilter name="sample" label="Sample filter" value="" />
      </div>
    </Panel>
  </>
);
