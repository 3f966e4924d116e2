import { type Fields, eachObject, fieldsOf } from '../../../base/json/objects.ts'
import { clip, shortText } from '../cells.ts'
import { predicateOf, statementsIn } from './unwrap.ts'

/** Something that went into a build, or came out of it. */
export interface Material {
  readonly uri: string
  /** `sha256:…`; '' where none is named. */
  readonly digest: string
}

/** What a page shows of one attestation; '' for what it does not name. */
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

/** Reads SLSA provenance of versions 0.1 to 1; other in-toto statements only by their type and subjects. */
export function readProvenance(value: unknown): Provenance[] | null {
  const found = statementsIn(value).slice(0, MOST_STATEMENTS)
  return found.length === 0 ? null : found.map(readStatement)
}

function readStatement(statement: Fields): Provenance {
  const predicate = predicateOf(statement)
  const common = {
    predicateType: shortText(statement['predicateType']),
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
    builder: shortText(fieldsOf(builder)['id']),
    buildType: shortText(buildType ?? type),
    sources: materialsOf([configSource ?? named]),
    materials: materialsOf(all),
    materialCount: all.length,
    startedAt: shortText(times['buildStartedOn'], 60),
    finishedAt: shortText(times['buildFinishedOn'], 60),
    invocation: shortText(times['buildInvocationId'] ?? times['buildInvocationID']),
  }
}

function readVersion1(predicate: Fields): Build {
  const { buildType, externalParameters, resolvedDependencies } = fieldsOf(predicate['buildDefinition'])
  const { builder, metadata } = fieldsOf(predicate['runDetails'])
  const times = fieldsOf(metadata)
  const all: unknown[] = Array.isArray(resolvedDependencies) ? resolvedDependencies : []
  return {
    builder: shortText(fieldsOf(builder)['id']),
    buildType: shortText(buildType),
    sources: sourcesOf(fieldsOf(externalParameters)),
    materials: materialsOf(all),
    materialCount: all.length,
    startedAt: shortText(times['startedOn'], 60),
    finishedAt: shortText(times['finishedOn'], 60),
    invocation: shortText(times['invocationId']),
  }
}

/** The source among a build's parameters: where it is depends on the builder. */
function sourcesOf({ workflow, source, sourceToBuild, buildConfigSource }: Fields): Material[] {
  const { repository, ref, path } = fieldsOf(workflow)
  const run =
    shortText(repository) === ''
      ? []
      : [
          {
            uri: [repository, ref, path]
              .map((one) => shortText(one))
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
    const text = shortText(uri ?? repository ?? name)
    const hash = first === undefined ? '' : clip(`${first[0]}:${shortText(first[1])}`)
    if (text !== '' || hash !== '') found.push({ uri: text, digest: hash })
  }
  return found
}
