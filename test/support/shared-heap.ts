/**
 * The heap of a worker has what all its files left, above the size from which a run of the catalog collects it: no run does
 * so in a suite whose files share workers. A collection takes a twentieth of a second; it stays for threads and processes.
 */
Object.assign(globalThis, { gc: () => undefined })
