import { type Fields, eachObject, fieldsOf, textOfJson } from '../../../base/json/objects.ts'
import { refuseManyValues } from '../../../base/json/values.ts'
import { type Opening, documentsIn, predicateOf, statementsIn } from '../../../documents/envelopes.ts'

/** Something that went into a build, or came out of it. */
export interface Material {
  readonly uri: string
  /** `sha256:…`; '' where none is named. */
  readonly digest: string
}

/** One attestation as it is read; '' for what it does not name. */
export interface Provenance {
  readonly predicateType: string
  readonly builder: string
  readonly buildType: string
  readonly sources: readonly Material[]
  readonly materials: readonly Material[]
  readonly materialCount: number
  readonly subjects: readonly Material[]
  readonly startedAt: string
  readonly finishedAt: string
  readonly invocation: string
}

/** Attestations of a document that are read; materials and subjects of one. */
const MOST_STATEMENTS = 20
const MOST_MATERIALS = 200

/** How documents of provenance are opened. */
const PROVENANCE_OPENING: Opening = {
  what: 'the provenance',
  formats: null,
  refuse: refuseManyValues,
}

/**
 * Reads SLSA provenance of versions 0.1 to 1, in whatever contains the statements; other in-toto statements only by their type
 * and subjects; none of another format. Throws `bad_request`.
 */
export function readProvenance(bytes: Buffer): Provenance[] {
  const { documents } = documentsIn(bytes, PROVENANCE_OPENING)
  return statementsIn(documents, PROVENANCE_OPENING).slice(0, MOST_STATEMENTS).map(readStatement)
}

function readStatement(statement: Fields): Provenance {
  const predicate = fieldsOf(predicateOf(statement))
  const common = {
    predicateType: textIn(statement['predicateType']),
    subjects: materialsOf(statement['subject']),
  }
  const isSecond = predicate['buildDefinition'] !== undefined
  return { ...common, ...(isSecond ? readVersion1(predicate) : readVersion0(predicate)) }
}

type Build = Omit<Provenance, 'predicateType' | 'subjects'>

function readVersion0(predicate: Fields): Build {
  const { builder, buildType, recipe, invocation, metadata, materials } = predicate
  const { configSource } = fieldsOf(invocation)
  const times = fieldsOf(metadata)
  const all: unknown[] = Array.isArray(materials) ? materials : []
  const { definedInMaterial, type } = fieldsOf(recipe)
  const named = typeof definedInMaterial === 'number' ? all[definedInMaterial] : all[0]
  return {
    builder: textIn(fieldsOf(builder)['id']),
    buildType: textIn(buildType ?? type),
    sources: materialsOf([configSource ?? named]),
    materials: materialsOf(all),
    materialCount: all.length,
    startedAt: textIn(times['buildStartedOn']),
    finishedAt: textIn(times['buildFinishedOn']),
    invocation: textIn(times['buildInvocationId'] ?? times['buildInvocationID']),
  }
}

function readVersion1(predicate: Fields): Build {
  const { buildType, externalParameters, resolvedDependencies } = fieldsOf(predicate['buildDefinition'])
  const { builder, metadata } = fieldsOf(predicate['runDetails'])
  const times = fieldsOf(metadata)
  const all: unknown[] = Array.isArray(resolvedDependencies) ? resolvedDependencies : []
  return {
    builder: textIn(fieldsOf(builder)['id']),
    buildType: textIn(buildType),
    sources: sourcesOf(fieldsOf(externalParameters)),
    materials: materialsOf(all),
    materialCount: all.length,
    startedAt: textIn(times['startedOn']),
    finishedAt: textIn(times['finishedOn']),
    invocation: textIn(times['invocationId']),
  }
}

/** The source among a build's parameters: where it is depends on the builder. */
function sourcesOf({ workflow, source, sourceToBuild, buildConfigSource }: Fields): Material[] {
  const { repository, ref, path } = fieldsOf(workflow)
  const run =
    textIn(repository) === ''
      ? []
      : [
          {
            uri: [repository, ref, path]
              .map((one) => textIn(one))
              .filter(Boolean)
              .join(' '),
            digest: '',
          },
        ]
  return [...run, ...[source, sourceToBuild, buildConfigSource].flatMap((one) => materialsOf([one]))]
}

function materialsOf(value: unknown): Material[] {
  const found: Material[] = []
  for (const one of eachObject(value)) {
    if (found.length === MOST_MATERIALS) break
    const { uri, repository, name, digest } = one
    const [first] = Object.entries(fieldsOf(digest))
    const text = textIn(uri ?? repository ?? name)
    const hash = first === undefined ? '' : `${first[0]}:${textIn(first[1])}`
    if (text !== '' || hash !== '') found.push({ uri: text, digest: hash })
  }
  return found
}

/** Longest text that is kept, characters. */
const LONGEST_TEXT = 2_000

/** Returns a value as text, what is no text as JSON; '' where there is none. */
function textIn(value: unknown): string {
  return textOfJson(value ?? '').slice(0, LONGEST_TEXT)
}
