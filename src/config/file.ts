import { isUtf8 } from 'node:buffer'
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { messageOf, systemCode } from '../base/errors.ts'
import type { GivenSettings, Layer } from './problems.ts'
import { SECTIONS, SETTINGS } from './settings.ts'
import { fileHint, suggestSection, suggestSetting } from './suggest.ts'
import { readNamedFile } from '../base/files.ts'

const UNREADABLE: Partial<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder, not a file',
  EACCES: 'it may not be read by this user',
}

type Document = Yaml.Document
type Pair = Yaml.Pair

const require = createRequire(import.meta.url)

/** Loads the parser with the first file: most programs get their settings from the environment, and parsed defaults. */
function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml
}

/** The file being read: where messages point to, and what they collect. */
interface Reading {
  readonly path: string
  readonly origin: string
  readonly document: Document
  readonly lines: Yaml.LineCounter
  readonly given: GivenSettings[]
  readonly problems: string[]
}

/**
 * Reads one YAML file of settings. Nothing is thrown: a file that cannot be read or parsed is a layer
 * with problems and no values.
 */
export function readFileLayer(path: string, origin: string): Layer {
  let source: string
  try {
    const bytes = readNamedFile(path)
    if (!isUtf8(bytes)) return unreadLayer(path, 'it is not UTF-8: save it in that encoding')
    source = bytes.toString('utf8')
  } catch (error) {
    return unreadLayer(path, UNREADABLE[systemCode(error) ?? ''] ?? messageOf(error))
  }
  const lines = new (yaml().LineCounter)()
  const document = yaml().parseDocument(source, { lineCounter: lines, prettyErrors: false })
  const reading: Reading = { path, origin, document, lines, given: [], problems: [] }
  if (document.errors.length > 0) reading.problems.push(...document.errors.map((error) => describeYaml(reading, error)))
  else readSections(reading)
  const warnings = document.warnings.map((warning) => describeYaml(reading, warning))
  return { given: reading.given, problems: reading.problems, warnings }
}

function unreadLayer(path: string, why: string): Layer {
  return { given: [], problems: [`configuration file ${path}: ${why}`], warnings: [] }
}

function place({ path, lines }: Reading, offset: number | undefined): string {
  return offset === undefined ? `file ${path}` : `file ${path}, line ${lines.linePos(offset).line}`
}

/** The parser's complaint with its line, less the piece of the file it may quote: that could be a secret. */
function describeYaml(reading: Reading, { code, message, pos }: Yaml.YAMLError): string {
  const fault = code === 'DUPLICATE_KEY' ? 'the same key is there twice' : message.replace(/(?<! ): .*$/s, '')
  return `${place(reading, pos[0])}: not valid YAML: ${fault}`
}

function readSections(reading: Reading): void {
  const root = reading.document.contents
  if (isEmpty(root)) return
  if (!yaml().isMap(root)) {
    reading.problems.push(`${place(reading, 0)}: the file is not a mapping of sections`)
    return
  }
  for (const pair of root.items) readSection(reading, pair)
}

function isEmpty(node: unknown): boolean {
  return node === null || (yaml().isScalar(node) && node.value === null)
}

function readSection(reading: Reading, pair: Pair): void {
  const { name, where } = nameOf(reading, pair)
  const section = resolveAlias(reading, pair.value)
  if (!SECTIONS.includes(name)) reading.problems.push(`${name} (${where}): unknown section${sectionHint(name)}`)
  else if (yaml().isMap(section)) for (const item of section.items) readValue(reading, name, item)
  else if (!isEmpty(section))
    reading.problems.push(`${name} (${where}): not a mapping: its settings go below it, indented`)
}

function readValue(reading: Reading, section: string, pair: Pair): void {
  const { name, where } = nameOf(reading, pair)
  const key = `${section}.${name}`
  const setting = SETTINGS.find((candidate) => candidate.key === key)
  if (setting === undefined) {
    reading.problems.push(`${key} (${where}): unknown key${keyHint(key, section)}`)
    return
  }
  try {
    const raw: unknown = yaml().isNode(pair.value) ? pair.value.toJS(reading.document) : null
    reading.given.push({ setting, raw, origin: reading.origin, where })
  } catch {
    reading.problems.push(`${key} (${where}): its aliases (*) cannot be resolved`)
  }
}

function keyHint(key: string, section: string): string {
  const near = suggestSetting(key)
  if (near !== null) return `; did you mean ${near.key}?${fileHint(near)}`
  const known = SETTINGS.filter((one) => one.section === section).map(({ name }) => name)
  return `; those of ${section} are ${known.join(', ')}`
}

function sectionHint(name: string): string {
  const section = suggestSection(name)
  if (section !== null) return `; did you mean ${section}?`
  const near = suggestSetting(name)
  return near === null
    ? `; the sections are ${SECTIONS.join(', ')}`
    : `; did you mean ${near.name} below ${near.section}?${fileHint(near)}`
}

function nameOf(reading: Reading, { key }: Pair): { name: string; where: string } {
  const name = yaml().isScalar(key) ? String(key.value) : 'a key that is not text'
  return { name, where: place(reading, yaml().isNode(key) ? key.range?.[0] : undefined) }
}

function resolveAlias({ document }: Reading, value: unknown): unknown {
  return yaml().isAlias(value) ? value.resolve(document) : value
}
