/** Calls `work` and closes `store` after it, also after a promise of it or an error. */
export function closing<T>(store: { close(): unknown }, work: () => T): T {
  let isPending = false
  try {
    const result = work()
    if (!(result instanceof Promise)) return result
    isPending = true
    return result.finally(() => store.close()) as T
  } finally {
    if (!isPending) store.close()
  }
}
