# A cell in a container: docker build -t understudy . && docker compose up
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/understudy \
 && /opt/understudy/bin/pip install --no-cache-dir -c constraints.txt '.[mesh,hmi,serial,modbus,nats,mqtt,vision,log]'

FROM python:3.12-slim-bookworm
# Kernels for any processor of the architecture: the machine that runs the image may be another one.
ENV PATH=/opt/understudy/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=""
COPY --from=build /opt/understudy /opt/understudy
RUN understudy warm && useradd --create-home --uid 1000 understudy
USER understudy
WORKDIR /home/understudy
COPY deploy/container.yaml deploy/healthcheck.py ./
EXPOSE 8080 5000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["python", "/home/understudy/healthcheck.py"]
ENTRYPOINT ["understudy"]
CMD ["run", "container.yaml"]
