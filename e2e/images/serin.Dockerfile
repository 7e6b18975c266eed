# Builds the same image as the local cluster gets, for a registry. Made from
# the table of images by `go test ./images -update` in e2e; do not edit.
# Build it from the root of the repository:
#   docker build -f e2e/images/serin.Dockerfile .

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -buildid=" -o /serin ./cmd/serin
RUN printf 'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n' > /passwd \
 && printf 'root:x:0:\nnonroot:x:65532:\n' > /group

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends nginx libnginx-mod-stream \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /passwd /group /etc/
COPY --from=build /serin /serin
USER 65532:65532
ENTRYPOINT ["/serin"]
