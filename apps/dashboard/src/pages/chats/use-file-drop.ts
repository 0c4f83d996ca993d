import { useEffect, useRef, useState } from 'react';

const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes('Files') ?? false;

/**
 * Takes files that are dropped anywhere on the page. Null takes none, and still keeps the browser
 * from opening a dropped file in place of the page. Returns true while files are dragged over it.
 */
export const useFileDrop = (take: ((files: readonly File[]) => void) | null): boolean => {
  const [isOver, setOver] = useState(false);
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    let end: ReturnType<typeof setTimeout> | undefined;
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(latest.current !== null);
      // No browser tells reliably that a drag has left the window.
      clearTimeout(end);
      end = setTimeout(() => setOver(false), 400);
    };
    const drop = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      clearTimeout(end);
      setOver(false);
      latest.current?.([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener('dragover', over);
    addEventListener('drop', drop);
    return () => {
      clearTimeout(end);
      removeEventListener('dragover', over);
      removeEventListener('drop', drop);
    };
  }, []);
  return isOver;
};
