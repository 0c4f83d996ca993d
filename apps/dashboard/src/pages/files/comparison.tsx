import { lazy, Suspense } from 'react';
import { setParams, useParam } from '../../data/router.js';
import { Button, css as ui, Loading, Panel } from '../../ui/ui.js';
import type { Shown } from './shown-version.js';
import { placeOf, type FileChange } from './versions.js';
import css from './files.module.css';

const VersionDiff = lazy(async () => ({ default: (await import('./version-diff.js')).VersionDiff }));

/** The difference between two versions of a file, of which each can be chosen. */
export const Comparison = ({ changes, shown }: { changes: readonly FileChange[]; shown: Shown }) => {
  const from = useParam('from');
  const isSplit = useParam('diff') === 'split';
  const stored = changes.filter(({ digest }) => digest !== null);
  const before = stored.find(({ version }) => String(version) === from);
  const after = shown.change;
  if (from === '' || !after) return null;
  const choose = (name: 'from' | 'v', value: string) => (
    <select
      aria-label={name === 'from' ? 'Version before' : 'Version after'}
      value={value}
      onChange={(event) => setParams({ [name]: event.target.value })}
    >
      {stored.map(({ version }) => (
        <option key={version} value={version}>
          v{version}
        </option>
      ))}
    </select>
  );
  return (
    <Panel
      title="Difference"
      actions={
        <>
          <Button aria-pressed={isSplit} onClick={() => setParams({ diff: isSplit ? null : 'split' })}>
            Side by side
          </Button>
          <Button onClick={() => setParams({ from: null, diff: null })}>Close the difference</Button>
        </>
      }
      isPadded
    >
      <p className={css.compared}>
        {choose('from', from)} to {choose('v', String(after.version))}
      </p>
      {before ? (
        <Suspense fallback={<Loading what="the difference" />}>
          <VersionDiff
            before={placeOf(before)}
            after={placeOf(after)}
            label={`Changes from version ${before.version} to version ${after.version}`}
            isSplit={isSplit}
          />
        </Suspense>
      ) : (
        <p className={ui.muted}>Version {from} is not among the versions that are read.</p>
      )}
    </Panel>
  );
};
