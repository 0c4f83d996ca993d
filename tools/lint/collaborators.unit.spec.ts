import { describe, expect, it } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '../..');
const CONTEXTS = [
  ...['agent', 'agents', 'conversation', 'files', 'native-tools', 'orchestration', 'providers'],
  ...['gateway', 'memory', 'metering', 'sandbox'],
];
/** Maximum number of collaborators of a class. */
const MAX = 8;
/** Classes that have more, with the reason. The list only shrinks. */
const WIDE: Readonly<Record<string, string>> = {
  'libs/agents/features/lifecycle/agent-upkeep.ts AgentUpkeep': 'four loops that end together',
  'libs/gateway/features/events/event-subscription.ts EventSubscription':
    'what one client asked for, and five calls of this client',
  'libs/gateway/features/identity/identity.module.ts IdentityLifecycle':
    'parts that share one Prisma Client and end with its pool',
  'libs/gateway/features/sockets/authenticate-socket.ts SocketAuthentication':
    'facts about one socket at its upgrade, five of them plain values',
};
/** Names of the types of option bags. Their members count, not the bag. */
const BAG = /(Deps|Options|Services|Platform|Parts)$/;

type Shape = readonly string[];
type Declared = ReadonlyMap<string, ts.InterfaceDeclaration | ts.TypeAliasDeclaration>;

const files = CONTEXTS.flatMap((context) => globSync(`libs/${context}/features/**/*.ts`, { cwd: ROOT }))
  .filter((file) => !/\.(spec|d)\.ts$|\/(dist|testing|node_modules)\//.test(file))
  .map((file) => ts.createSourceFile(file, readFileSync(join(ROOT, file), 'utf8'), ts.ScriptTarget.Latest));

const nodesOf = <N extends ts.Node>(root: ts.Node, is: (node: ts.Node) => node is N): N[] => {
  const found: N[] = [];
  const visit = (node: ts.Node): void => {
    if (is(node)) found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(root);
  return found;
};

const isDeclaration = (node: ts.Node): node is ts.InterfaceDeclaration | ts.TypeAliasDeclaration =>
  ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);

const declared: Declared = new Map(
  files.flatMap((file) => nodesOf(file, isDeclaration).map((node) => [node.name.text, node] as const)),
);

/** Returns the literals of a union of names, as `Pick` and `Omit` have it. */
const literalsIn = (type: ts.TypeNode | undefined): Shape =>
  type ? nodesOf(type, ts.isStringLiteral).map(({ text }) => text) : [];

const namesOf = (members: ts.NodeArray<ts.TypeElement>): string[] =>
  members.flatMap(({ name }) => (name && ts.isIdentifier(name) ? [name.text] : []));

/** Returns the members of a declared bag and of its bases; null for any other type. */
const membersOfDeclared = (name: string): Shape | null => {
  const found = declared.get(name);
  if (!found || !BAG.test(name)) return null;
  if (ts.isTypeAliasDeclaration(found)) return membersOf(found.type);
  const bases = (found.heritageClauses ?? []).flatMap(({ types }) => [...types]);
  return [...new Set([...namesOf(found.members), ...bases.flatMap((base) => membersOf(base) ?? [])])];
};

const membersOfReference = (name: string, [of, keys]: readonly ts.TypeNode[]): Shape | null => {
  if (name === 'Pick') return membersOf(of) && literalsIn(keys);
  if (name === 'Omit') return membersOf(of)?.filter((member) => !literalsIn(keys).includes(member)) ?? null;
  return name === 'Partial' || name === 'Readonly' ? membersOf(of) : membersOfDeclared(name);
};

const membersOfAll = (types: readonly ts.TypeNode[]): Shape | null => {
  const parts = types.map(membersOf).filter((part) => part !== null);
  return parts.length === 0 ? null : [...new Set(parts.flat())];
};

const nameOf = (target: ts.Node): string => (ts.isIdentifier(target) ? target.text : '');

/** Returns the members of an option bag; null for any other type. */
function membersOf(type: ts.Node | undefined): Shape | null {
  if (!type) return null;
  if (ts.isTypeLiteralNode(type)) return namesOf(type.members);
  if (ts.isIntersectionTypeNode(type)) return membersOfAll(type.types);
  if (ts.isTypeReferenceNode(type))
    return membersOfReference(nameOf(type.typeName), type.typeArguments ?? []);
  if (!ts.isExpressionWithTypeArguments(type)) return null;
  return membersOfReference(nameOf(type.expression), type.typeArguments ?? []);
}

/** Returns the names of what a class gets from outside. */
const collaboratorsOf = (type: ts.ClassDeclaration): Shape => {
  const constructor = type.members.find(ts.isConstructorDeclaration);
  const parameters = (constructor?.parameters ?? []).flatMap((parameter) => {
    const members = membersOf(parameter.type);
    return members ?? [ts.isIdentifier(parameter.name) ? parameter.name.text : 'options'];
  });
  const injected = type.members.filter(
    (member) => ts.isPropertyDeclaration(member) && (ts.getDecorators(member) ?? []).length > 0,
  );
  return [...parameters, ...injected.map(() => 'property')];
};

const classes = files.flatMap((file) =>
  nodesOf(file, ts.isClassDeclaration).map((type) => ({
    name: `${file.fileName} ${type.name?.text ?? ''}`,
    collaborators: collaboratorsOf(type),
    isHandler: file.fileName.endsWith('.handler.ts'),
  })),
);

describe('the classes of the services', () => {
  it('are all read from the disk', () => expect(classes.length).toBeGreaterThan(100));

  it(`have at most ${MAX} collaborators each, except those that are listed`, () => {
    const wide = classes.filter(({ collaborators }) => collaborators.length > MAX);
    const described = wide.map(({ name, collaborators }) => `${name}: ${collaborators.join(', ')}`);
    const listed = Object.keys(WIDE);
    expect(described.filter((line) => !listed.some((name) => line.startsWith(`${name}:`)))).toEqual([]);
    expect(listed.filter((name) => !wide.some((found) => found.name === name))).toEqual([]);
  });
});

describe('the handlers of the contexts', () => {
  it('inject values, and no object of services', () => {
    const handlers = classes.filter(({ isHandler }) => isHandler);
    expect(handlers.length).toBeGreaterThan(25);
    expect(handlers.filter(({ collaborators }) => collaborators.length > MAX)).toEqual([]);
    expect(handlers.filter(({ collaborators }) => collaborators.includes('deps'))).toEqual([]);
  });
});
