import { ref } from '../components.ts'
import type { ComponentRef, PathOperation } from '../openapi.ts'

/** Operations by method, by path. */
type Paths<Operation> = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Components that were made of equal parts, by their names. */
type SharedParts = Readonly<Record<'responses' | 'parameters', Readonly<Record<string, object>>>>

/**
 * Moves answers and parameters that several operations have into components, so that the document stays small. An answer's
 * component is named after its status, a parameter's after its name: `Answer200`, `Answer200_2`, `QueryLimit`.
 */
export function shareParts<Operation extends PathOperation>(
  paths: Paths<Operation>,
): { readonly paths: Paths<Operation>; readonly shared: SharedParts } {
  const responses = createPool('responses')
  const parameters = createPool('parameters')
  const all = Object.values(paths).flatMap((one) => Object.values(one))
  for (const operation of all) {
    for (const [status, answer] of Object.entries(operation.responses)) responses.count(`Answer${status}`, answer)
    for (const one of operation.parameters ?? []) parameters.count(parameterName(one), one)
  }
  const share = (operation: Operation): Operation => ({
    ...operation,
    ...(operation.parameters && {
      parameters: operation.parameters.map((one) => parameters.share(one)),
    }),
    responses: Object.fromEntries(
      Object.entries(operation.responses).map(([status, one]) => [status, responses.share(one)]),
    ),
  })
  const mapped = Object.entries(paths).map(([path, operations]) => [
    path,
    Object.fromEntries(Object.entries(operations).map(([method, one]) => [method, share(one)])),
  ])
  return {
    paths: Object.fromEntries(mapped) as Paths<Operation>,
    shared: { responses: responses.components(), parameters: parameters.components() },
  }
}

function parameterName(one: object): string {
  if (!('in' in one && 'name' in one)) return ''
  const words = `${String(one.in)} ${String(one.name)}`.split(/[^A-Za-z0-9]+/)
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

interface Pooled {
  readonly name: string
  readonly part: object
  uses: number
}

/** Counts equal parts, and refers to those that are used more than once. */
function createPool(kind: 'responses' | 'parameters') {
  const pool = new Map<string, Pooled>()
  const taken = new Map<string, number>()
  return {
    count(name: string, part: object): void {
      if ('$ref' in part) return
      const key = JSON.stringify(part)
      const known = pool.get(key)
      if (known !== undefined) {
        known.uses++
        return
      }
      const number = taken.get(name) ?? 0
      taken.set(name, number + 1)
      const suffix = number === 0 ? '' : `_${number + 1}`
      pool.set(key, { name: name + suffix, part, uses: 1 })
    },
    share<Part extends object>(part: Part): Part | ComponentRef {
      const pooled = pool.get(JSON.stringify(part))
      return pooled === undefined || pooled.uses < 2 ? part : ref(kind, pooled.name)
    },
    components(): Record<string, object> {
      const used = [...pool.values()].filter(({ uses }) => uses > 1)
      return Object.fromEntries(used.map(({ name, part }) => [name, part]))
    },
  }
}
