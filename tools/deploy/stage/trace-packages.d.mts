/** Packages of a program: folders of own ones by name, and names of others by their paths. */
export const tracePackages: (
  root: string,
  main: string,
  options: { arch: string; leavesOut?: readonly string[] },
) => { own: ReadonlyMap<string, string>; others: ReadonlyMap<string, string> };
